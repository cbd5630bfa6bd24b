import { getUser } from '#lib/user';

/** Shows the internal id of the signed-in user. `getUser` runs once for this component and the page. */
export async function CurrentUser() {
  const user = await getUser();
  return user ? (
    <p>
      Signed in as <code>{user.userId}</code>
    </p>
  ) : (
    <p>Signed out</p>
  );
}

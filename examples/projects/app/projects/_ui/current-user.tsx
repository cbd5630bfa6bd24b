import { getUser } from '#lib/user';

/** Shows the internal id of the signed-in user. This component and the page share one result of `getUser`. */
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

import { mailedCode, shownLink, signUp } from '../harness/browser/browser';
import { CONSOLE_URL, expect, test } from '../harness/browser/test';
import { me } from '../harness/requests';

test('The first page of a new user registers the user, and the webhook that arrives later does not change the row', async ({
  page,
  service: { database, idp, url },
}) => {
  idp.webhooks.pause();
  const email = 'newcomer@example.com';
  await signUp(page, email, async () => {
    const banner = page.getByRole('complementary', { name: 'Local stack' });
    await banner.getByText('Codes appear on the console.').waitFor();
    const link = banner.getByRole('link', { name: 'Open the console' });
    expect(await link.getAttribute('href')).toBe(CONSOLE_URL);
    return mailedCode(email, idp);
  });
  const { identityProviderUserId, userId } = await shownLink(page);
  expect(idp.store.users.all().find((user) => user.email === email)?.id).toBe(identityProviderUserId);
  const registered = await database.idsOf(identityProviderUserId);
  expect(registered).toEqual([userId]);

  const delivery = idp.webhooks.list().find(({ body }) => body.includes(identityProviderUserId));
  expect(delivery).toMatchObject({ type: 'user.created', status: 'pending', attempts: [] });
  idp.webhooks.resume();
  const late = await idp.webhooks.settled(delivery?.id ?? '');
  expect(late).toMatchObject({ status: 'delivered', attempts: [{ status: 200 }] });
  expect(await database.idsOf(identityProviderUserId)).toEqual(registered);

  const context = { isAuthenticated: true, userId, identityProviderUserId };
  expect(await (await page.request.get('/users/v1/me')).json()).toEqual(context);
  const session = idp.createSession(identityProviderUserId);
  expect((await me(url, idp.sessionToken(session.id))).body).toEqual(context);
});

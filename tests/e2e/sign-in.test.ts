import {
  expiredSessionCookies,
  PASSWORD,
  shownLink,
  signIn,
  signInNewUser,
} from '../harness/browser/browser';
import { expect, test } from '../harness/browser/test';

test('Without a session, /account redirects to the sign-in form. The form reports a wrong password, and returns to /account after the right one', async ({
  page,
  service,
  expectedErrors,
}) => {
  expectedErrors.push(/status of 422 .*attempt_first_factor/);
  const email = 'password@example.com';
  const user = service.idp.createUser({ email, password: PASSWORD });
  await page.goto('/account');
  expect(page.url()).toBe(`${service.url}/sign-in?redirect_url=%2Faccount`);
  await signIn(page, email, 'not the password');
  await page.locator('#error-password').getByText('Password is incorrect').waitFor();
  expect((await page.request.get('/users/v1/me')).status()).toBe(401);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.waitForURL('/account');
  expect((await shownLink(page)).identityProviderUserId).toBe(user.id);
  await page.getByRole('banner').getByRole('link', { name: 'Account' }).waitFor();
});

test('After a sign-out, the API responds with 401 and /account redirects to the sign-in page', async ({
  page,
  service,
}) => {
  await signInNewUser(page, service, 'sign-out@example.com');
  await shownLink(page);
  await page.getByRole('button', { name: 'Open user menu' }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL('/');
  await page.getByRole('link', { name: 'Create an account' }).waitFor();
  await page.getByRole('banner').getByRole('link', { name: 'Sign in' }).waitFor();
  expect((await page.request.get('/users/v1/me')).status()).toBe(401);
  await page.goto('/account');
  expect(new URL(page.url()).pathname).toBe('/sign-in');
});

test('A session token that expires while the account page is open is replaced without an error', async ({
  page,
  service,
}) => {
  await signInNewUser(page, service, 'expiry@example.com');
  const link = await shownLink(page);
  await page.getByRole('button', { name: 'Open user menu' }).waitFor();
  const response = page.waitForResponse('/users/v1/me');
  // Sets the cookies and clicks in the same task of the page, because the SDK replaces an expired token within seconds.
  await page.getByRole('button', { name: 'Send GET' }).evaluate(
    (button: HTMLElement, cookies) => {
      // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is asynchronous
      for (const { name, value } of cookies) document.cookie = `${name}=${value}; path=/`;
      button.click();
    },
    await expiredSessionCookies(page, service),
  );
  expect((await response).status()).toBe(200);
  expect(await (await response).json()).toMatchObject(link);
});

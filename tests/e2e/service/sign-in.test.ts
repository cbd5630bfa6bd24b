import type { Page } from 'playwright';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  expiredSessionCookies,
  mailedCode,
  PASSWORD,
  shownLink,
  signIn,
  signInWithoutForm,
  signUp,
  visit,
} from '../../harness/browser/browser';
import { launchBrowser } from '../../harness/browser/chromium';
import { me } from '../../harness/requests';
import { startTestService, type TestService } from '../../harness/service';
import { stopAfterAll } from '../../vitest/stop-after-all';

const browser = stopAfterAll(await launchBrowser());

/** Returns the status and body of GET /users/v1/me with the cookies of the browser. */
async function meByCookie(page: Page) {
  const response = await page.request.get('/users/v1/me');
  return { status: response.status(), body: await response.json() };
}

describe.each(['test', 'live'] as const)('with %s keys', (keys) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ keys });
    return service.stop;
  });

  test('A sign-up registers the user, and the account page, the API and the database have the same internal id', () =>
    visit(browser, service, {}, async (page) => {
      const email = `sign-up@${keys}.example`;
      await signUp(page, email, () => mailedCode(email, service.idp));
      const { identityProviderUserId, userId } = await shownLink(page);
      expect(service.idp.store.users.all().find((user) => user.email === email)?.id).toBe(
        identityProviderUserId,
      );
      const [delivery] = service.idp.webhooks
        .list()
        .filter(({ body }) => body.includes(identityProviderUserId));
      expect(delivery?.type).toBe('user.created');
      expect((await service.idp.webhooks.settled(delivery?.id ?? '')).status).toBe('delivered');
      const context = { isAuthenticated: true, userId, identityProviderUserId };
      expect(await meByCookie(page)).toEqual({ status: 200, body: context });
      const session = service.idp.createSession(identityProviderUserId);
      expect((await me(service.url, service.idp.sessionToken(session.id))).body).toEqual(context);
      expect(await service.database.rowsOf(identityProviderUserId)).toMatchObject([{ id: userId }]);
    }));

  test('The sign-in form reports a wrong password, and the right password signs the user in', () =>
    visit(browser, service, { expected: [/status of 422 .*attempt_first_factor/] }, async (page) => {
      const email = `password@${keys}.example`;
      const user = service.idp.createUser({ email, password: PASSWORD });
      await signIn(page, email, 'not the password');
      await page.locator('#error-password').getByText('Password is incorrect').waitFor();
      expect((await meByCookie(page)).status).toBe(401);
      await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.waitForURL('/account');
      expect((await shownLink(page)).identityProviderUserId).toBe(user.id);
    }));

  test('After a sign-out, the API responds with 401 and /account redirects to the sign-in page', () =>
    visit(browser, service, {}, async (page) => {
      const email = `sign-out@${keys}.example`;
      service.idp.createUser({ email, password: PASSWORD });
      await signInWithoutForm(page, email);
      await shownLink(page);
      await page.getByRole('button', { name: 'Open user menu' }).click();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.waitForURL('/');
      await page.getByRole('link', { name: 'Create an account' }).waitFor();
      await page
        .getByRole('navigation', { name: 'Account' })
        .getByRole('link', { name: 'Sign in' })
        .waitFor();
      expect(await meByCookie(page)).toEqual({ status: 401, body: { message: 'Unauthorized' } });
      await page.goto('/account');
      expect(new URL(page.url()).pathname).toBe('/sign-in');
    }));

  test('A session token that expires while the account page is open is replaced without an error', () =>
    visit(browser, service, {}, async (page) => {
      const email = `expiry@${keys}.example`;
      service.idp.createUser({ email, password: PASSWORD });
      await signInWithoutForm(page, email);
      const before = await shownLink(page);
      await page.getByRole('button', { name: 'Open user menu' }).waitFor();
      const response = page.waitForResponse('/users/v1/me');
      // Sets the cookies and clicks in the same task of the page, because the SDK replaces an expired token within seconds.
      await page.getByRole('button', { name: 'Refresh' }).evaluate(
        (button: HTMLElement, cookies) => {
          // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is asynchronous
          for (const { name, value } of cookies) document.cookie = `${name}=${value}; path=/`;
          button.click();
        },
        await expiredSessionCookies(page, service),
      );
      expect((await response).status()).toBe(200);
      await expect.poll(() => shownLink(page)).toEqual({ ...before, origin: 'Read from the cache.' });
    }));

  test('A session token that expired while the browser showed another site is renewed before the account page loads', () =>
    visit(browser, service, {}, async (page) => {
      const email = `return@${keys}.example`;
      service.idp.createUser({ email, password: PASSWORD });
      await signInWithoutForm(page, email);
      const { userId } = await shownLink(page);
      await page.goto('about:blank');
      await page.context().addCookies(await expiredSessionCookies(page, service));
      const response = await page.goto('/account');
      expect(response?.request().redirectedFrom(), 'a redirect through the identity provider').not.toBeNull();
      expect(new URL(page.url()).pathname).toBe('/account');
      expect((await shownLink(page)).userId).toBe(userId);
    }));
});

import type { Page } from 'playwright';
import { expect, test } from 'vitest';
import {
  axeViolations,
  mailedCode,
  PASSWORD,
  shownLink,
  signIn,
  signInWithoutForm,
  signUp,
  visit,
} from '../../harness/browser/browser';
import { launchBrowser } from '../../harness/browser/chromium';
import { startTestService } from '../../harness/service';
import { stopAfterAll } from '../../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const browser = stopAfterAll(await launchBrowser());

/** Signs in a user whom the service has never seen: the webhook is paused. */
async function signInUnseen(page: Page, email: string): Promise<string> {
  service.idp.webhooks.pause();
  const { id } = service.idp.createUser({ email, password: PASSWORD });
  await signInWithoutForm(page, email);
  return id;
}

test('with the webhook paused the first request registers, and the late webhook changes nothing', () =>
  visit(browser, service, {}, async (page) => {
    service.idp.webhooks.pause();
    const email = 'paused@example.com';
    await signUp(page, email, () => mailedCode(email, service.idp));
    const first = await shownLink(page);
    expect(first.origin).toBe('Registered by this request.');
    const registered = await service.database.rowsOf(first.identityProviderUserId);
    expect(registered).toHaveLength(1);
    const delivery = service.idp.webhooks
      .list()
      .find(({ body }) => body.includes(first.identityProviderUserId));
    expect(delivery).toMatchObject({ status: 'pending', attempts: [] });
    service.idp.webhooks.resume();
    const late = await service.idp.webhooks.settled(delivery?.id ?? '');
    expect(late).toMatchObject({ status: 'delivered', attempts: [{ status: 200 }] });
    expect(await service.database.rowsOf(first.identityProviderUserId)).toEqual(registered);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('Read from the cache.').waitFor();
    expect((await shownLink(page)).userId).toBe(first.userId);
  }));

test('with the database down the page says so, and it recovers by itself without a reload', () =>
  visit(browser, service, { expected: [/status of 500 .*\/users\/v1\/me/] }, async (page) => {
    await service.database.proxy.treat('refuse');
    try {
      await signInUnseen(page, 'outage@example.com');
      await page.getByRole('heading', { name: 'The service failed' }).waitFor();
      await page.getByText('It returned status 500.').waitFor();
      await page.getByText('Request id:').waitFor();
      await page.getByRole('status').getByText('tries again').waitFor({ state: 'attached' });
      expect(await axeViolations(page)).toEqual([]);
    } finally {
      await service.database.proxy.treat('forward');
    }
    expect((await shownLink(page)).origin).toBe('Registered by this request.');
  }));

test('with the service out of reach the page says so, and asks again when told', () =>
  visit(browser, service, { expected: [/ERR_CONNECTION_REFUSED .*\/users\/v1\/me/] }, async (page) => {
    await page.route('/users/v1/me', (route) => route.abort('connectionrefused'));
    await signInUnseen(page, 'offline@example.com');
    await page.getByRole('heading', { name: 'The service cannot be reached' }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.unroute('/users/v1/me');
    // It also asks by itself, and may have done so at this very moment.
    await page.getByRole('button', { name: /^(?:Try again|Refresh)$/ }).click();
    await shownLink(page);
  }));

test('a session that was ended elsewhere leads back to signing in', () =>
  visit(browser, service, { expected: [/status of 401/] }, async (page) => {
    const id = await signInUnseen(page, 'ended@example.com');
    const { userId } = await shownLink(page);
    await page.getByRole('button', { name: 'Open user menu' }).waitFor();
    for (const session of service.idp.store.sessions.all()) {
      if (session.userId === id) service.idp.revokeSession(session.id);
    }
    await page.route('/users/v1/me', (route) =>
      route.fulfill({ status: 401, json: { message: 'Unauthorized' } }),
    );
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.unroute('/users/v1/me');
    await page.getByRole('link', { name: 'Sign in again' }).click();
    await page.getByLabel('Email address').waitFor();
    await signIn(page, 'ended@example.com');
    expect((await shownLink(page)).userId).toBe(userId);
  }));

test('a 401 is asked again once with a new token before the user hears of it', () =>
  visit(browser, service, { expected: [/status of 401 .*\/users\/v1\/me/] }, async (page) => {
    await signInUnseen(page, 'retry@example.com');
    await shownLink(page);
    await page.getByRole('button', { name: 'Open user menu' }).waitFor();
    const renewed = page.waitForResponse(/\/__clerk\/v1\/client\/sessions\/[^/]+\/tokens/);
    await page.route(
      '/users/v1/me',
      (route) => route.fulfill({ status: 401, json: { message: 'Unauthorized' } }),
      { times: 1 },
    );
    await page.getByRole('button', { name: 'Refresh' }).click();
    expect((await renewed).status()).toBe(200);
    await page.getByText('Read from the cache.').waitFor();
  }));

test('the API is called as typed, and request and answer are shown as they are', () =>
  visit(browser, service, { expected: [/status of 400 .*\/auth\/v1\/register/] }, async (page) => {
    const id = await signInUnseen(page, 'console@example.com');
    const { userId } = await shownLink(page);
    const sent = page.getByRole('region', { name: 'Request' });
    const received = page.getByRole('region', { name: 'Response' });

    await page.getByRole('button', { name: 'Send GET /users/v1/me' }).click();
    await page.getByText('200 The link already existed.').waitFor();
    expect(await sent.innerText()).toMatch(/^GET \/users\/v1\/me\n/);
    const context = { isAuthenticated: true, userId, identityProviderUserId: id };
    expect((await received.innerText()).split('\n\n').at(-1)).toBe(JSON.stringify(context, null, 2));
    expect(await received.innerText()).toMatch(
      /^200 OK\n(?:.+\n)*cache-control: no-store\n(?:.+\n)*x-request-id: /,
    );

    const field = page.getByLabel('Identity-provider user id to register');
    expect(await field.inputValue()).toBe(id);
    await field.fill('user_somebody_else');
    await page.getByRole('button', { name: 'Send POST /auth/v1/register' }).click();
    await page.getByText('201 The link was created.').waitFor();
    expect((await sent.innerText()).split('\n\n').at(-1)).toBe(
      JSON.stringify({ identityProviderUserId: 'user_somebody_else' }, null, 2),
    );
    expect(await service.database.rowsOf('user_somebody_else')).toHaveLength(1);

    await field.fill('');
    await field.press('Enter');
    await page.getByText('400 The request was rejected').waitFor();
    expect(await received.innerText()).toContain('"message"');
  }));

test('an id is copied whole, and the reader is told', () =>
  visit(browser, service, { permissions: ['clipboard-read', 'clipboard-write'] }, async (page) => {
    await signInUnseen(page, 'copy@example.com');
    const { userId } = await shownLink(page);
    await page.getByRole('button', { name: 'Copy Internal user id' }).click();
    await page.getByRole('status').getByText('Copied: Internal user id').waitFor({ state: 'attached' });
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(userId);
  }));

test('without a session the account page leads to signing in, and back again', () =>
  visit(browser, service, {}, async (page) => {
    service.idp.createUser({ email: 'back@example.com', password: PASSWORD });
    await page.goto('/account');
    expect(page.url()).toBe(`${service.url}/sign-in?redirect_url=%2Faccount`);
    await signIn(page, 'back@example.com');
    await page.waitForURL('/account');
  }));

import {
  activateNewOrganization,
  axeViolations,
  shownLink,
  signIn,
  signInNewUser,
} from '../harness/browser/browser';
import { expect, test } from '../harness/browser/test';

test('The account page shows an error while the database is down, and recovers without a reload', async ({
  page,
  service,
  expectedErrors,
}) => {
  expectedErrors.push(/status of 500 .*\/users\/v1\/me/);
  await service.database.proxy.treat('refuse');
  try {
    await signInNewUser(page, service, 'outage@example.com');
    await page.getByRole('heading', { name: 'The service failed' }).waitFor();
    await page.getByText('It returned status 500.').waitFor();
    await page.getByText('Request id:').waitFor();
    await page.getByRole('status').getByText('tries again').waitFor({ state: 'attached' });
    expect(await axeViolations(page)).toEqual([]);
  } finally {
    await service.database.proxy.treat('forward');
  }
  await shownLink(page);
});

test('While the service is unreachable, the account page shows an error and a button that sends the request again', async ({
  page,
  service,
  expectedErrors,
}) => {
  expectedErrors.push(/ERR_CONNECTION_REFUSED .*\/users\/v1\/me/);
  await page.route('/users/v1/me', (route) => route.abort('connectionrefused'));
  await signInNewUser(page, service, 'offline@example.com');
  await page.getByRole('heading', { name: 'The service cannot be reached' }).waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await page.unroute('/users/v1/me');
  // The page also retries automatically. If such a retry succeeds, the button `Refresh` replaces the button `Try again`.
  await page.getByRole('button', { name: /^(?:Try again|Refresh)$/ }).click();
  await shownLink(page);
});

test('The account page links to the sign-in page if the session was revoked', async ({
  page,
  service,
  expectedErrors,
}) => {
  expectedErrors.push(/status of 401/);
  const id = await signInNewUser(page, service, 'ended@example.com');
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
});

test('After a single 401, the account page gets a new token and sends the request again', async ({
  page,
  service,
  expectedErrors,
}) => {
  expectedErrors.push(/status of 401 .*\/users\/v1\/me/);
  await signInNewUser(page, service, 'retry@example.com');
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
});

test('The account page sends API requests and shows each request and response', async ({
  page,
  service,
  expectedErrors,
}) => {
  expectedErrors.push(/status of 400 .*\/auth\/v1\/register/);
  const id = await signInNewUser(page, service, 'console@example.com');
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
  await field.fill('user_another');
  await page.getByRole('button', { name: 'Send POST /auth/v1/register' }).click();
  await page.getByText('201 The link was created.').waitFor();
  expect((await sent.innerText()).split('\n\n').at(-1)).toBe(
    JSON.stringify({ identityProviderUserId: 'user_another' }, null, 2),
  );
  expect(await service.database.idsOf('user_another')).toHaveLength(1);

  await field.fill('');
  await field.press('Enter');
  await page.getByText('400 The request was rejected').waitFor();
  expect(await received.innerText()).toContain('"message"');
});

test('The copy button of the account page copies the whole internal id and announces the copy to screen readers', async ({
  page,
  service,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await signInNewUser(page, service, 'copy@example.com');
  const { userId } = await shownLink(page);
  await page.getByRole('button', { name: 'Copy Internal user id' }).click();
  await page.getByRole('status').getByText('Copied: Internal user id').waitFor({ state: 'attached' });
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(userId);
});

test('The account page shows the active organization, and its tenant id unless the database is down', async ({
  page,
  service,
  expectedErrors,
}) => {
  expectedErrors.push(/status of 500 .*\/users\/v1\/me/);
  const shown = (term: string) => page.locator(`dt:text-is("${term}") + dd code`).innerText();
  await service.database.proxy.treat('refuse');
  try {
    await signInNewUser(page, service, 'organization@example.com');
    await page.getByRole('heading', { name: 'The service failed' }).waitFor();
    expect(await page.getByRole('heading', { name: 'Your organization' }).count()).toBe(0);
    await activateNewOrganization(page);
    expect(await shown('Identity-provider organization id')).toMatch(/^org_/);
    await expect(page.getByText('Tenant id')).toHaveCount(0);
  } finally {
    await service.database.proxy.treat('forward');
  }
  await page.reload();
  const ids = [await shown('Tenant id'), await shown('Identity-provider organization id')];
  const { rows } = await service.database.pool.query('SELECT * FROM tenants');
  expect(rows.map((row) => Object.values(row))).toEqual([ids]);
  expect(await axeViolations(page)).toEqual([]);
});

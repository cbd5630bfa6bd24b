import {
  activateNewOrganization,
  axeViolations,
  shownId,
  shownLink,
  signInNewUser,
} from '../harness/browser/browser';
import { expect, test } from '../harness/browser/test';

test('While the database is down, the account page is the error page, whose button loads the page once the database is up', async ({
  page,
  service,
  expectedErrors,
}) => {
  expectedErrors.push(/status of 500 .*\/account/, /Minified React error #441/);
  await service.database.proxy.treat('refuse');
  try {
    await signInNewUser(page, service, 'outage@example.com');
    await page.getByRole('heading', { name: 'This page could not be shown.' }).waitFor();
    await page.getByText('Reference:').waitFor();
  } finally {
    await service.database.proxy.treat('forward');
  }
  await page.getByRole('button', { name: 'Try again' }).click();
  await shownLink(page);
});

test('After a single 401, a call of the API from the account page gets a new token and sends the request again', async ({
  page,
  service,
  expectedErrors,
}) => {
  expectedErrors.push(/status of 401 .*\/users\/v1\/me/);
  await signInNewUser(page, service, 'retry@example.com');
  await page.getByRole('button', { name: 'Open user menu' }).waitFor();
  const renewed = page.waitForResponse(/\/__clerk\/v1\/client\/sessions\/[^/]+\/tokens/);
  await page.route(
    '/users/v1/me',
    (route) => route.fulfill({ status: 401, json: { message: 'Unauthorized' } }),
    { times: 1 },
  );
  await page.getByRole('button', { name: 'Send GET' }).click();
  expect((await renewed).status()).toBe(200);
  await page.getByText('200 The link exists.').waitFor();
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
  await page.getByText('200 The link exists.').waitFor();
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

test('The account page shows the ids of the active organization as the database has them', async ({
  page,
  service,
}) => {
  await signInNewUser(page, service, 'ada@example.com');
  await shownLink(page);
  expect(await page.getByRole('heading', { name: 'Your organization' }).count()).toBe(0);
  await activateNewOrganization(page);
  const ids = [await shownId(page, 'Tenant id'), await shownId(page, 'Identity-provider organization id')];
  const { rows } = await service.database.pool.query('SELECT * FROM tenants');
  expect(rows.map((row) => Object.values(row))).toEqual([ids]);
  await page.getByRole('button', { name: 'Send GET' }).click();
  await page.getByRole('region', { name: 'Response' }).waitFor();
  expect(await axeViolations(page)).toEqual([]);
  // The picture in README.md
  await page.screenshot({ path: test.info().outputPath('account.png'), fullPage: true });
});

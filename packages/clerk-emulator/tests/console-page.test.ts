import { Webhook } from 'svix';
import { expect, test } from 'vitest';
import { startBrowser } from './helpers/browser';
import { SIGNING_SECRET, startForTest } from './helpers/emulator';
import { startHttpServer } from './helpers/http-server';
import { stopAfterAll } from './helpers/stop';

const endpoint = stopAfterAll(
  await startHttpServer(async (request) => {
    try {
      new Webhook(SIGNING_SECRET).verify(await request.text(), Object.fromEntries(request.headers));
      return Response.json({ received: true });
    } catch {
      return Response.json({ message: 'Invalid webhook signature' }, { status: 400 });
    }
  }),
);
const newPage = await startBrowser();

/** Opens the console of a new emulator. Its retry delays are those of Clerk, so a failed delivery stays pending. */
async function open() {
  const webhook = { url: endpoint.url, secret: SIGNING_SECRET };
  const emulator = await startForTest({ webhook, console: { preferredPort: 0 } });
  const page = await newPage(emulator.consoleUrl ?? '');
  await page.goto('/');
  await page.getByText('Live', { exact: true }).waitFor();
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  return { emulator, page, copied, deliveries: page.locator('.deliveries > li') };
}

test('The console creates a user, and shows the user, the code of a mail and the delivery of user.created', async () => {
  const { emulator, page, copied, deliveries } = await open();
  await page.getByText('Create a user', { exact: true }).click();
  await page.getByLabel('E-mail').fill('ada@example.com');
  await page.getByLabel('Password').fill('short');
  await page.getByRole('button', { name: 'Create user' }).click();
  await page.locator('#new-user').getByText('Passwords must be 8 characters or more.').waitFor();
  await page.getByLabel('Password').fill('');
  await page.getByRole('button', { name: 'Create user' }).click();
  await page.getByRole('heading', { name: 'ada@example.com' }).waitFor();
  const delivery = deliveries.filter({ hasText: 'user.created' });
  await delivery.getByText('Delivered').waitFor();
  await delivery.locator('summary').click();
  await delivery.getByText('{"received":true}').waitFor();
  await delivery.getByRole('region', { name: 'Payload of user.created' }).getByText('ada@').waitFor();
  const mail = { id: 'ema_1', to: 'ada@example.com', code: '424243', purpose: 'sign-up', sentAt: 1 } as const;
  emulator.store.mails.put(mail);
  await page.getByRole('button', { name: 'Copy code for ada@example.com' }).click();
  await page.getByText('Copied').waitFor();
  expect(await copied()).toBe('424243');
});

test('The console starts a session, copies its token, revokes it and deletes the user after a confirmation', async () => {
  const { emulator, page, copied } = await open();
  const { id } = emulator.createUser({ email: 'session@example.com' });
  await page.getByRole('button', { name: 'New session for session@example.com' }).click();
  await page.getByText('Sessions: 1 active').click();
  await page.getByRole('button', { name: 'Copy token' }).click();
  await page.getByText('Copied', { exact: true }).waitFor();
  const [, claims = ''] = (await copied()).split('.');
  expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({ sub: id });
  const remove = page.getByRole('button', { name: 'Delete session@example.com' });
  page.once('dialog', (dialog) => dialog.dismiss());
  await remove.click();
  expect(emulator.store.users.get(id)).toBeDefined();
  page.on('dialog', (dialog) => dialog.accept());
  await page.getByRole('button', { name: 'Revoke' }).click();
  await page.locator('.session').getByText('revoked').waitFor();
  await remove.click();
  await page.getByText('No users yet.').waitFor();
});

test('The console pauses, breaks, repeats and delays deliveries, sends examples and redelivers', async () => {
  const { emulator, page, deliveries } = await open();
  await page.getByRole('switch', { name: 'Pause deliveries' }).click();
  await page.getByRole('switch', { name: 'Break signatures' }).click();
  await page.getByText('Send an example', { exact: true }).click();
  await page.getByLabel('Example').selectOption('organizationMembership.created');
  await expect.poll(() => page.getByLabel('Data').inputValue()).toContain('"organization_membership"');
  await page.getByRole('button', { name: 'Send example' }).click();
  await deliveries.getByText('waits while paused').waitFor();
  await page.getByRole('switch', { name: 'Pause deliveries' }).click();
  await deliveries.locator('summary').getByText('HTTP 400').waitFor();
  await page.getByRole('switch', { name: 'Break signatures' }).click();
  await deliveries.locator('summary').click();
  await deliveries.getByRole('button', { name: 'Redeliver' }).click();
  await deliveries.getByText('Delivered').waitFor();
  await page.getByLabel('Deliveries per event').fill('3');
  await page.getByLabel('Deliveries per event').blur();
  await page.getByLabel('Delay in seconds').fill('60');
  await page.getByLabel('Delay in seconds').blur();
  await expect.poll(() => emulator.webhooks.settings).toMatchObject({ copies: 3, delaySeconds: 60 });
});

test('The console filters its lists, resets the emulator and deletes an OAuth client, and fits 390 px', async () => {
  const { emulator, page } = await open();
  for (const name of ['ada', 'grace']) emulator.createUser({ email: `${name}@example.com` });
  const registration = { client_name: 'Agent', redirect_uris: ['http://localhost/'] };
  const headers = { 'content-type': 'application/json' };
  await fetch(`${emulator.url}/oauth/register`, {
    method: 'POST',
    headers,
    body: JSON.stringify(registration),
  });
  await page.setViewportSize({ width: 390, height: 800 });
  const headingOf = (name: string) => page.getByRole('heading', { name: `${name}@example.com` });
  await headingOf('ada').waitFor();
  await page.getByLabel('Filter the lists').fill('GRACE');
  await headingOf('ada').waitFor({ state: 'detached' });
  expect(await headingOf('grace').isVisible()).toBe(true);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  await page.getByLabel('Filter the lists').fill('');
  page.on('dialog', (dialog) => dialog.accept());
  await page.getByRole('button', { name: 'Delete Agent' }).click();
  await page.getByText('No OAuth clients yet').waitFor();
  await page.getByRole('button', { name: 'Reset the emulator' }).click();
  await page.getByText('No users yet.').waitFor();
});

test('The console shows hostile event data as text', async () => {
  const { emulator, page, deliveries } = await open();
  const hostile = '<img src=x onerror="document.title=1"><script>document.title=1</script>';
  emulator.webhooks.send(hostile, { id: hostile, [hostile]: [hostile] });
  await deliveries.locator('summary').click();
  await deliveries.locator('pre').getByText('onerror=').waitFor();
  expect(await deliveries.locator('.subject').innerText()).toBe(hostile);
  expect(await page.locator('img').count()).toBe(0);
});

test('An open console reports that the emulator has stopped, and reconnects when it is back', async () => {
  const { emulator, page } = await open();
  emulator.createUser({ email: 'before@example.com' });
  await page.getByRole('heading', { name: 'before@example.com' }).waitFor();
  await emulator.stop();
  const banner = page.locator('#stale');
  await banner.waitFor();
  await page.getByRole('button', { name: 'New session' }).click();
  await page.locator('.user').getByText('Is it still running?').waitFor();
  const preferredPort = Number(new URL(emulator.consoleUrl ?? '').port);
  await startForTest({ console: { preferredPort } });
  await banner.waitFor({ state: 'hidden' });
  await page.getByText('No users yet.').waitFor();
});

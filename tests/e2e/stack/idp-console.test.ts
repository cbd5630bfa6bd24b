import type { Emulator } from 'clerk-emulator';
import type { Page } from 'playwright';
import { Webhook } from 'svix';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { axeViolations, visit } from '../../harness/browser/browser';
import { launchBrowser } from '../../harness/browser/chromium';
import { startFetchServer } from '../../harness/dependencies/stub-server';
import { startProvider } from '../../harness/identity-provider';
import { SIGNING_SECRET as secret } from '../../harness/keys';
import { stopAfterAll } from '../../vitest/stop-after-all';

/** Error that the browser logs for requests to a stopped emulator. */
const GONE = /Failed to load resource: net::ERR_/;

/** Checks the signature of a delivery and responds like the webhook endpoint of the service. */
const handler = async (request: Request) => {
  try {
    new Webhook(secret).verify(await request.text(), Object.fromEntries(request.headers));
    return Response.json({ received: true });
  } catch {
    return Response.json({ message: 'Invalid webhook signature' }, { status: 400 });
  }
};
const endpoint = stopAfterAll(await startFetchServer(handler));
const browser = await launchBrowser();
afterAll(() => browser.close());

/** Starts the emulator. Its default retry delays are those of Clerk (5 s or more), so a failed delivery stays pending. */
const start = (preferredPort: number) =>
  startProvider({
    webhook: { url: `${endpoint.url}/webhooks/idp/v1/user-created`, secret },
    console: { preferredPort },
  });
let provider: Emulator;
beforeEach(async () => {
  provider = await start(0);
});
afterEach(() => provider.stop());

/** Opens the console, which is the web page of the Clerk emulator. The test fails if the page is loaded a second time. */
async function open(
  options: Parameters<typeof visit>[2],
  body: (page: Page) => Promise<void>,
): Promise<void> {
  const url = provider.consoleUrl ?? '';
  await visit(browser, { url }, options, async (page) => {
    let loads = 0;
    page.on('load', () => {
      loads += 1;
    });
    await page.goto('/');
    await page.getByText('Live', { exact: true }).waitFor();
    await body(page);
    expect(loads).toBe(1);
  });
}

const userHeading = (page: Page, email: string) =>
  page.locator('.user').getByRole('heading', { name: email });
/** Unfolds the form that creates a user. */
const openUserForm = (page: Page) => page.getByText('Create a user', { exact: true }).click();
const announced = (page: Page, text: string) =>
  page.getByRole('log').getByText(text).waitFor({ state: 'attached' });
const deliveries = (page: Page) => page.locator('.deliveries > li');
const mailTo = (to: string, code: string) =>
  provider.store.mails.put({ id: `ema_${code}`, to, code, purpose: 'sign-up', sentAt: Date.now() });

test('The console lists a user that its form created, and the acknowledged delivery of user.created', () =>
  open({}, async (page) => {
    await page.getByText('No users yet.').waitFor();
    await page.getByText('No deliveries yet.').waitFor();
    await openUserForm(page);
    const email = await page.getByLabel('E-mail').inputValue();
    expect(email).toMatch(/@example\.com$/);
    await page.getByRole('button', { name: 'Create user' }).click();

    await userHeading(page, email).waitFor();
    const delivery = deliveries(page).filter({ hasText: 'user.created' });
    await delivery.getByText('Delivered').waitFor();
    await delivery.locator('summary').click();
    await delivery.getByText('{"received":true}').waitFor();
    await delivery.getByRole('region', { name: 'Payload of user.created' }).getByText(email).waitFor();
    expect(await page.getByLabel('E-mail').inputValue()).not.toBe(email);
    await announced(page, 'user.created delivered, status 200');
  }));

test('The console shows each emailed code when it arrives, the newest code first, and a button copies a code', () =>
  open({ permissions: ['clipboard-read', 'clipboard-write'] }, async (page) => {
    await page.getByText('No mail yet.').waitFor();
    mailTo('first@example.com', '111111');
    mailTo('second@example.com', '424243');
    const newest = page.locator('.mails > li').first();
    await newest.getByText('second@example.com', { exact: true }).waitFor();
    await newest.getByRole('button', { name: 'Copy' }).click();
    await newest.getByText('Copied').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('424243');
    await announced(page, '4 2 4 2 4 3');
  }));

test('If the browser cannot copy a code, the console shows the code in a field and keeps the code selected', () =>
  open({}, async (page) => {
    mailTo('first@example.com', '111111');
    await page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error('denied'));
    });
    await page.getByRole('button', { name: 'Copy code for first@example.com' }).click();
    const field = page.getByLabel('code for first@example.com, to copy by hand');
    await field.waitFor();
    mailTo('second@example.com', '222222');
    await page.getByText('second@example.com', { exact: true }).waitFor();
    expect(await page.evaluate(() => getSelection()?.toString())).toBe('111111');
    expect(await page.getByText('Copied').count()).toBe(0);
  }));

test('An event that the console sends while deliveries are paused is delivered after deliveries resume', () =>
  open({}, async (page) => {
    const pause = page.getByRole('switch', { name: 'Pause deliveries' });
    await pause.click();
    await page.getByText('Paused: 0 events wait.').waitFor();
    await page.getByText('Send an event', { exact: true }).click();
    await page.getByLabel('Start from').selectOption('user.deleted');
    await expect.poll(() => page.getByLabel('Data').inputValue()).toContain('"deleted": true');
    await page.getByRole('button', { name: 'Send event' }).click();

    const delivery = deliveries(page).filter({ hasText: 'user.deleted' });
    await delivery.getByText('waits while paused').waitFor();
    await page.getByText('Paused: 1 event waits.').waitFor();
    expect(await pause.getAttribute('aria-checked')).toBe('true');
    await pause.click();
    await delivery.getByText('Delivered').waitFor();
  }));

test('The console shows the sample event that was selected last, even if an earlier selection loads later', () =>
  open({}, async (page) => {
    await page.route('/api/sample-events/user.created', async (route) => {
      await page.getByLabel('Start from').selectOption('user.deleted');
      await route.continue();
    });
    await page.getByText('Send an event', { exact: true }).click();
    await expect.poll(() => page.getByLabel('Data').inputValue()).toContain('"deleted": true');
    expect(await page.getByLabel('Type').inputValue()).toBe('user.deleted');
  }));

test('The console shows the error response to an invalid signature, and a redelivery with a valid signature succeeds', () =>
  open({}, async (page) => {
    const broken = page.getByRole('switch', { name: 'Break signatures' });
    await broken.click();
    await page.getByText('Every attempt has an invalid signature.').waitFor();
    await openUserForm(page);
    await page.getByRole('button', { name: 'Create user' }).click();
    const delivery = deliveries(page).first();
    await delivery.locator('summary').getByText('HTTP 400').waitFor();
    await delivery.getByText(/next try in \d s/).waitFor();
    await delivery.locator('summary').click();
    await delivery.getByText('{"message":"Invalid webhook signature"}').first().waitFor();

    await broken.click();
    await page.getByText('Every attempt has').waitFor({ state: 'hidden' });
    await delivery.getByRole('button', { name: 'Redeliver' }).click();
    await delivery.getByText('Delivered').waitFor();
    await delivery.getByText('{"received":true}').waitFor();
  }));

test('An update of the console does not close open details, move the focus or delete typed text', () =>
  open({}, async (page) => {
    provider.createUser({ email: 'opened@example.com' });
    const opened = page.locator('.groups > li').filter({ hasText: 'opened@example.com' });
    await opened.locator('summary').click();
    await openUserForm(page);
    await page.getByLabel('E-mail').fill('half-typ');
    for (const name of ['one', 'two', 'three']) provider.createUser({ email: `${name}@example.com` });
    await userHeading(page, 'three@example.com').waitFor();
    expect(await opened.locator('details').getAttribute('open')).not.toBeNull();
    expect(await page.getByLabel('E-mail').inputValue()).toBe('half-typ');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('new-user-email');

    const copy = opened.getByRole('button', { name: 'Copy payload' });
    await copy.focus();
    provider.createUser({ email: 'four@example.com' });
    await userHeading(page, 'four@example.com').waitFor();
    expect(await copy.evaluate((button) => button === document.activeElement)).toBe(true);
  }));

test('Keyboard users of the console confirm or cancel a deletion without losing the focus', () =>
  open({}, async (page) => {
    provider.createUser({ email: 'kept@example.com' });
    const focused = () => page.evaluate(() => document.activeElement?.textContent);
    const user = page.locator('.user');
    await user.getByRole('button', { name: 'Delete' }).focus();
    await page.keyboard.press('Enter');
    expect(await focused()).toBe('Cancel');
    await page.keyboard.press('Escape');
    expect(await focused()).toContain('Delete');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByText('No users yet.').waitFor();
    expect(await focused()).toBe('Users');
    expect(provider.store.users.all()).toEqual([]);
    await deliveries(page).filter({ hasText: 'user.deleted' }).getByText('Delivered').waitFor();
  }));

test('The console starts a session, copies the session token and revokes the session', () =>
  open({ permissions: ['clipboard-read', 'clipboard-write'] }, async (page) => {
    const { id } = provider.createUser({ email: 'session@example.com' });
    await page.getByRole('button', { name: 'New session for session@example.com' }).click();
    await page.getByRole('button', { name: 'Copy token' }).click();
    await page.getByText('Copied', { exact: true }).waitFor();
    const token = await page.evaluate(() => navigator.clipboard.readText());
    expect(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())).toMatchObject({
      sub: id,
    });
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page
      .getByRole('group', { name: 'Revoke this session?' })
      .getByRole('button', { name: 'Revoke' })
      .click();
    await page.getByText('1 ended').click();
    await page.locator('.session').getByText('revoked').waitFor();
    expect(await page.getByRole('button', { name: 'Copy token' }).count()).toBe(0);
  }));

test("The console initially collapses the list of a user's active sessions, and lists the ended sessions in a separate collapsed list", () =>
  open({}, async (page) => {
    const { id } = provider.createUser({ email: 'folded@example.com' });
    const ended = page.locator('.session').filter({ hasText: provider.createSession(id).id });
    const active = page.locator('.session').filter({ hasText: provider.createSession(id).id });
    const [first] = provider.store.sessions.all();
    provider.revokeSession(first?.id ?? '');
    const fold = page.getByText('Sessions: 1 active');
    await fold.waitFor();
    expect([await active.isVisible(), await ended.isVisible()]).toEqual([false, false]);
    await fold.click();
    await active.waitFor();
    expect(await ended.isVisible()).toBe(false);
    await page.getByText('1 ended').click();
    await ended.getByText('revoked').waitFor();
  }));

test.each([1280, 360])(
  'The links of the console move the focus to a visible section heading at a width of %i px',
  (width) =>
    open({ viewport: { width, height: 700 } }, async (page) => {
      for (let count = 0; count < 10; count += 1) provider.createUser({ email: `user-${count}@example.com` });
      await userHeading(page, 'user-9@example.com').waitFor();
      const names = { Endpoint: 'Webhook endpoint', Requests: 'API requests' };
      const headings = { Users: 'Users', Deliveries: 'Deliveries', Mails: 'Mails', ...names };
      for (const [link, name] of Object.entries(headings)) {
        await page.getByRole('navigation').getByRole('link', { name: link }).click();
        const heading = page.getByRole('heading', { name, exact: true });
        await expect.poll(() => heading.evaluate((found) => found === document.activeElement)).toBe(true);
        const covered = (await page.getByRole('banner').boundingBox())?.height ?? 700;
        const top = (await heading.boundingBox())?.y;
        expect(top, link).toBeGreaterThanOrEqual(covered);
        expect(top, link).toBeLessThan(700);
      }
    }),
);

test('The console filters deliveries by type and clears finished deliveries', () =>
  open({}, async (page) => {
    const types = () => deliveries(page).locator('.type').allInnerTexts();
    provider.createSession(provider.createUser({ email: 'listed@example.com' }).id);
    await provider.webhooks.idle();
    provider.webhooks.pause();
    provider.webhooks.send('user.created', { id: 'waiting' });
    await expect.poll(types).toEqual(['user.created', 'user.created', 'session.created']);
    const filter = page.getByLabel('Type of event');
    await filter.selectOption('user.created (2)');
    expect(await types()).toEqual(['user.created', 'user.created']);

    await filter.selectOption('session.created (1)');
    await page.getByRole('button', { name: 'Clear deliveries' }).click();
    await page
      .getByRole('group', { name: 'Clear all finished deliveries?' })
      .getByRole('button')
      .first()
      .click();
    await expect.poll(types).toEqual(['user.created']);
    await deliveries(page).getByText('waiting').waitFor();
    expect(await filter.innerText()).toBe('All types (1)\nuser.created (1)');
    await announced(page, 'Cleared 2 deliveries');
    expect(provider.webhooks.list().map(({ status }) => status)).toEqual(['pending']);
  }));

test('The console groups deliveries by user and shows user.created above the session events of the same user', () =>
  open({}, async (page) => {
    const ada = provider.createUser({ email: 'ada@example.com' });
    await provider.webhooks.idle();
    provider.createSession(ada.id);
    provider.createSession(ada.id);
    provider.createUser({ email: 'grace@example.com' });
    provider.webhooks.send('organization.created', { id: 'org_1' });
    await provider.webhooks.idle();
    const groups = () =>
      page.locator('.groups > li').evaluateAll((items) =>
        items.map((item) => ({
          name: item.querySelector('h3')?.textContent,
          types: [...item.querySelectorAll('.type')].map((type) => type.textContent),
        })),
      );
    await expect.poll(groups).toEqual([
      { name: 'Other events', types: ['organization.created'] },
      { name: 'grace@example.com', types: ['user.created'] },
      { name: 'ada@example.com', types: ['user.created', 'session.created', 'session.created'] },
    ]);
  }));

test('The form "Make an operation fail" of the console makes the next calls of the operation fail, and the console lists these calls', () =>
  open({ expected: [/status of 422/] }, async (page) => {
    await page.getByText('No requests yet.').waitFor();
    await page.getByText('Make an operation fail', { exact: true }).click();
    await page.getByLabel('Operation').selectOption('GET /v1/environment');
    await page.getByLabel('Result').selectOption('');
    await page.getByRole('button', { name: 'Add failure' }).click();
    await page.locator('#new-failure').getByText('needs a status').waitFor();
    expect(await page.getByLabel('Result').getAttribute('aria-invalid')).toBe('true');

    const addFailure = async (result: string, fields: Readonly<Record<string, string>>) => {
      await page.getByLabel('Result').selectOption(result);
      for (const [label, value] of Object.entries(fields)) await page.getByLabel(label).fill(value);
      await page.getByRole('button', { name: 'Add failure' }).click();
    };
    const failures = page.locator('#failure-list li');
    await addFailure('503', { Calls: '2', 'Delay in ms': '1' });
    await failures.getByText('after 1 ms · status 503 · next 2 calls').waitFor();
    await addFailure('Close the connection', { Calls: '1', 'Delay in ms': '' });
    await failures.getByText('disconnects · next call').waitFor();
    const call = () => fetch(`${provider.url}/v1/environment?secret`).catch(() => undefined);
    await call();
    await failures.getByText('after 1 ms · status 503 · next call').waitFor();
    await page.getByRole('button', { name: 'Remove the failure of GET /v1/environment' }).last().click();
    await expect.poll(() => failures.count()).toBe(1);
    await call();
    await call();
    await expect.poll(() => failures.count()).toBe(0);
    const statuses = () => page.locator('.requests .status').allInnerTexts();
    await expect.poll(statuses).toEqual(['200', '503', '503']);
    expect(await page.locator('.requests code').first().innerText()).toBe('GET /v1/environment');
  }));

test('The console shortens a long data URI in a payload, and the copy button copies the complete payload', () =>
  open({ permissions: ['clipboard-read', 'clipboard-write'] }, async (page) => {
    const image = `data:image/svg+xml,${'x'.repeat(500)}`;
    const { id } = provider.webhooks.send('user.updated', { id: 'user_1', image_url: image });
    const delivery = deliveries(page).first();
    await delivery.locator('summary').click();
    await delivery.locator('pre').getByText('"data:image/svg+xml,… (519 characters)"').waitFor();
    await delivery.getByRole('button', { name: `Copy payload of ${id}` }).click();
    await delivery.getByRole('button', { name: /^Copied/ }).waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(image);
  }));

test('The console links to the origin of the webhook endpoint', () =>
  open({}, async (page) => {
    const link = page.getByRole('banner').getByRole('link', { name: 'Open the application' });
    expect(await link.getAttribute('href')).toBe(new URL(endpoint.url).origin);
  }));

test('The console reports a failed redelivery, and the delivery keeps the status "Delivered"', () =>
  open({}, async (page) => {
    const { id } = provider.webhooks.send('user.deleted', {});
    const delivery = deliveries(page).first();
    await delivery.getByText('Delivered').waitFor();
    provider.webhooks.breakSignature(true);
    await delivery.locator('summary').click();
    await delivery.getByRole('button', { name: `Redeliver user.deleted ${id}` }).click();
    await delivery.getByText(/2 attempts · last redelivery failed · next try in \d s/).waitFor();
    await delivery.locator('summary').getByText('HTTP 400').waitFor();
    await delivery.getByText('Delivered').waitFor();
    await announced(page, 'user.deleted redelivery failed, status 400');
  }));

test('The console shows an error in the form whose input caused the error', () =>
  open({ expected: [/status of 422/] }, async (page) => {
    await openUserForm(page);
    await page.getByLabel('Password').fill('short');
    await page.getByRole('button', { name: 'Create user' }).click();
    await page.locator('#new-user').getByText('Passwords must be 8 characters or more.').waitFor();
    expect(await page.getByLabel('Password').getAttribute('aria-invalid')).toBe('true');
    await page.getByText('Send an event', { exact: true }).click();
    await page.getByLabel('Start from').selectOption('');
    await page.getByLabel('Type').fill('a.b');
    await page.getByLabel('Data').fill('{"id": ');
    await page.getByRole('button', { name: 'Send event' }).click();
    await page.locator('#new-event').getByText('The data is not valid JSON').waitFor();
    expect(provider.webhooks.list()).toEqual([]);
  }));

test('The console shows hostile event data as text', () =>
  open({}, async (page) => {
    const hostile = '<img src=x onerror="document.title=1"><script>document.title=1</script>';
    provider.webhooks.send(hostile, { id: hostile, [hostile]: [hostile] });
    const delivery = deliveries(page).first();
    await delivery.locator('summary').click();
    await delivery.locator('pre').getByText('onerror=').waitFor();
    expect(await delivery.locator('.subject').innerText()).toBe(hostile);
    expect(await page.locator('img').count()).toBe(0);
  }));

test('The console reports that the emulator does not respond, and reconnects when the emulator is back', () =>
  open({ expected: [GONE] }, async (page) => {
    provider.createUser({ email: 'before@example.com' });
    await userHeading(page, 'before@example.com').waitFor();
    const { port } = new URL(provider.consoleUrl ?? '');
    await provider.stop();
    const banner = page.getByRole('alert').filter({ hasText: "This page shows the emulator's state at" });
    await banner.waitFor();
    await openUserForm(page);
    await page.getByRole('button', { name: 'Create user' }).click();
    await page.locator('#new-user').getByText('Is it still running?').waitFor();
    await page.getByRole('button', { name: 'New session' }).click();
    await page.locator('.user').getByText('Is it still running?').waitFor();

    provider = await start(Number(port));
    await banner.waitFor({ state: 'hidden' });
    await page.getByText('No users yet.').waitFor();
    provider.createUser({ email: 'after@example.com' });
    await userHeading(page, 'after@example.com').waitFor();
  }));

test.each([1280, 360])(
  'With and without data, the console has no axe violations and no horizontal overflow at a width of %i px',
  (width) =>
    open({ viewport: { width, height: 900 } }, async (page) => {
      const check = async () => {
        expect(await axeViolations(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      };
      await check();
      const user = provider.createUser({ email: `${'very-long-'.repeat(5)}address@example.com` });
      provider.createSession(user.id);
      provider.revokeSession(provider.createSession(user.id).id);
      mailTo('somebody@example.com', '123456');
      await provider.webhooks.idle();
      provider.webhooks.breakSignature(true);
      const failing = provider.webhooks.send('organization.membership.created', {});
      await deliveries(page).first().locator('summary').getByText('HTTP 400').waitFor();
      provider.webhooks.pause();
      const [operation = ''] = provider.operations.toSorted((one, other) => other.length - one.length);
      provider.failures.add({ operation, status: 503, delayMilliseconds: 1000, calls: 1000 });
      provider.failures.add({ operation: 'GET /v1/environment', disconnect: true });
      const paths = ['environment', 'environment', `${'long-'.repeat(20)}path`];
      for (const path of paths) await fetch(`${provider.url}/v1/${path}`).catch(() => undefined);
      await page.getByText('Make an operation fail', { exact: true }).click();
      await page.locator('.requests > li').nth(2).waitFor();
      await openUserForm(page);
      await page.getByText('Send an event', { exact: true }).click();
      await page.getByText('Sessions: 1 active').click();
      await page.getByText('1 ended').click();
      await page.getByRole('button', { name: 'Clear deliveries' }).click();
      await page.locator('summary').filter({ hasText: 'organization' }).click();
      await page.getByText(failing.id).first().waitFor();
      await page.getByRole('button', { name: 'Delete' }).click();
      await expect.poll(() => page.getByLabel('Data').inputValue()).toContain('user_');
      await check();
    }),
);

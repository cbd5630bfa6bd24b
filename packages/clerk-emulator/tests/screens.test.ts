import type { Page } from 'playwright';
import { expect, onTestFinished, test } from 'vitest';
import type { EmulatorOptions } from '../src/emulator';
import { PASSWORD, signIn, startBrowser, submit, typeMailedCode } from './helpers/browser';
import { startForTest } from './helpers/emulator';

const newPage = await startBrowser();

/** Starts an emulator and opens a page of the account portal that fails the test on a console error and on each 4xx and 5xx. */
async function open(options: Partial<EmulatorOptions>, path: string, expected: readonly number[] = []) {
  const emulator = await startForTest(options);
  const page = await newPage(emulator.url);
  const problems: string[] = [];
  page.on('console', (message) => {
    const isExpected = expected.some((status) => message.text().includes(`status of ${status}`));
    if (message.type() === 'error' && !isExpected) problems.push(message.text());
  });
  page.on('response', (response) => {
    if (response.status() >= 400 && !expected.includes(response.status()))
      problems.push(`${response.status()} ${response.url()}`);
  });
  onTestFinished(() => expect(problems).toEqual([]));
  const create = (email: string) => emulator.createUser({ email, password: PASSWORD, firstName: 'Ada' });
  await page.goto(path);
  return { emulator, page, create };
}

async function signOut(page: Page): Promise<void> {
  await page.evaluate('void Clerk.signOut()');
  await page.waitForURL('/sign-in');
}

test('A user signs up with a social provider, signs in again with the known account, and a denial returns', async () => {
  const { emulator, page } = await open({ socialProviders: ['custom_acme'] }, '/sign-up');
  const withAcme = () =>
    page
      .locator('.cl-socialButtonsBlockButton__custom_acme, .cl-socialButtonsIconButton__custom_acme')
      .first()
      .click();
  await withAcme();
  await page.fill('input[name=email]', 'social@example.com');
  await page.fill('input[name=first_name]', 'Ada');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('Profile details').first().waitFor();
  const [user] = emulator.store.users.all();
  expect(user).toMatchObject({
    email: 'social@example.com',
    firstName: 'Ada',
    externalAccounts: [{ provider: 'custom_acme' }],
  });
  await signOut(page);
  await withAcme();
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.getByText('You did not grant access').first().waitFor();
  await withAcme();
  await page.getByRole('button', { name: 'social@example.com' }).click();
  await page.getByText('Profile details').first().waitFor();
  expect(emulator.store.users.size()).toBe(1);
});

test('A user without an account signs in with a social provider, which creates the user', async () => {
  const { emulator, page } = await open({ socialProviders: ['custom_acme'] }, '/sign-in');
  await page.locator('.cl-socialButtonsBlockButton__custom_acme').click();
  await page.fill('input[name=email]', 'new@example.com');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('Profile details').first().waitFor();
  expect(emulator.store.users.all()).toMatchObject([{ email: 'new@example.com' }]);
});

test('A person joins the waitlist on the portal, whose sign-up page is closed', async () => {
  const { emulator, page } = await open({ waitlist: true }, '/sign-up');
  await page.getByText('Access restricted').waitFor();
  await page.goto('/waitlist');
  await page.fill('input[name=emailAddress]', 'new@example.com');
  await submit(page);
  await page.getByText('Thanks for joining').waitFor();
  expect(emulator.store.waitlistEntries.all()).toMatchObject([{ email: 'new@example.com' }]);
});

test('A user connects an account of a social provider in the profile, unless it belongs to another user', async () => {
  const { emulator, page, create } = await open({ socialProviders: ['custom_acme'] }, '/sign-in');
  const { id } = create('ada@example.com');
  create('other@example.com');
  await signIn(page, 'ada@example.com');
  const accounts = () => emulator.store.users.get(id)?.externalAccounts ?? [];
  const connect = async (email: string) => {
    await page.getByRole('button', { name: 'Connect account' }).click();
    await page.getByRole('menuitem', { name: 'acme' }).click();
    await page.fill('input[name=email]', email);
    await page.getByRole('button', { name: 'Continue' }).click();
  };
  await connect('other@example.com');
  await page.getByText('already claimed by another user').waitFor();
  expect(accounts()).toMatchObject([{ verification: { status: 'unverified' } }]);
  await page.getByRole('button', { name: 'Open menu' }).last().click();
  await page.getByRole('menuitem', { name: 'Remove' }).click();
  await page.getByRole('button', { name: 'Remove' }).click();
  await expect.poll(accounts).toEqual([]);
  await connect('ada@acme.example');
  await page.getByText('ada@acme.example').waitFor();
  expect(accounts()).toMatchObject([{ provider: 'custom_acme', email: 'ada@acme.example' }]);
});

test('A user adds a phone number in the profile and signs in with it by a text message', async () => {
  const { emulator, page, create } = await open({ phoneNumbers: true }, '/sign-in');
  create('phone@example.com');
  await signIn(page, 'phone@example.com');
  await page.getByText('Add phone number').click();
  await page.fill('input[name=phoneNumber]', '2015550123');
  await submit(page);
  await typeMailedCode(page, emulator, '+12015550123');
  await page.getByText('+1 (201) 555-0123').first().waitFor();
  await page.locator('input[autocomplete="one-time-code"]').waitFor({ state: 'detached' });
  await signOut(page);
  await page.getByRole('link', { name: 'Use phone' }).or(page.getByText('Use phone')).first().click();
  await page.locator('input[type=tel]').fill('2015550123');
  await submit(page);
  await page.fill('input[name=password]', PASSWORD);
  await submit(page);
  await page.getByText('Profile details').first().waitFor();
});

test('With organizationRequired, a user creates an organization after the sign-in', async () => {
  const { emulator, page, create } = await open({ organizationRequired: true }, '/sign-in');
  create('task@example.com');
  await signIn(page, 'task@example.com');
  await page.fill('input[name=name]', 'Acme');
  await submit(page);
  await page.getByText('Profile details').first().waitFor();
  const [organization] = emulator.store.organizations.all();
  expect(emulator.store.sessions.all()).toMatchObject([{ organizationId: organization?.id }]);
});

test('An admin opens the general page of an organization and gives it a logo, and a user gets a picture', async () => {
  const { emulator, page, create } = await open({}, '/sign-in');
  const { id } = create('admin@example.com');
  emulator.createOrganization({ name: 'Acme', createdBy: id });
  await signIn(page, 'admin@example.com');
  const upload = async (button: string) => {
    await page.getByRole('button', { name: button }).click();
    const svg = await page.screenshot({ clip: { x: 0, y: 0, width: 8, height: 8 } });
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'picture.png', mimeType: 'image/png', buffer: svg });
  };
  await upload('Update profile');
  await expect.poll(() => emulator.store.users.get(id)?.imageUrl).toMatch(/\/images\/img_/);
  await page.goto('/organization');
  await upload('Update profile');
  await expect.poll(() => emulator.store.organizations.all()[0]?.imageUrl).toMatch(/\/images\/img_/);
  await page.locator(`img[src^="${emulator.store.organizations.all()[0]?.imageUrl}"]`).first().waitFor();
});

test('With reverification, a user who signed in ten minutes ago is verified before a change of the password', async () => {
  const { emulator, page, create } = await open({ reverification: true }, '/sign-in', [403]);
  const { id } = create('again@example.com');
  await signIn(page, 'again@example.com');
  const [session] = emulator.store.sessions.all();
  if (session) emulator.store.sessions.put({ ...session, createdAt: Date.now() - 10 * 60_000 });
  const before = emulator.store.users.get(id)?.password;
  await page.getByRole('button', { name: 'Security' }).click();
  await page.getByRole('button', { name: 'Update password' }).click();
  await page.fill('input[name=newPassword]', 'another horse battery');
  await page.fill('input[name=confirmPassword]', 'another horse battery');
  await submit(page);
  await page.fill('input[name=password]', PASSWORD);
  await page.locator('.cl-formButtonPrimary').last().press('Enter');
  await expect.poll(() => emulator.store.users.get(id)?.password).not.toBe(before);
});

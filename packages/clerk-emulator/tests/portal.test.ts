import { verifyToken } from '@clerk/backend';
import type { Page } from 'playwright';
import { expect, test } from 'vitest';
import { startApplication } from './fixtures/application.mjs';
import { PASSWORD, signIn, startBrowser, submit, typeMailedCode } from './helpers/browser';
import { startProvider } from './helpers/emulator';
import { tokenFor } from './helpers/requests';
import { stopAfterAll } from './helpers/stop';

const emulator = stopAfterAll(await startProvider());
const application = stopAfterAll(await startApplication(emulator.variables));
const newPage = await startBrowser();
const text = (page: Page, id: string) => page.locator(`#${id}`).innerText();
const shows = (page: Page, id: string, value: string) =>
  page.locator(`#${id}`).filter({ hasText: value }).waitFor();
const says = (page: Page, message: RegExp) => page.getByText(message).first().waitFor();

/** Signs a user in on the portal and returns to the application. */
async function signInAndReturn(page: Page, email: string): Promise<void> {
  await page.goto('/protected');
  await signIn(page, email);
  await page.waitForURL('/protected');
}

test('A user signs up on the portal and returns to the application, whose sign-out signs out every tab', async () => {
  emulator.createUser({ email: 'taken@example.com' });
  const page = await newPage(application.url);
  await page.goto('/protected');
  expect(page.url()).toContain(`${emulator.url}/sign-in`);
  await page.getByRole('link', { name: 'Sign up' }).click();
  await page.fill('input[name=emailAddress]', 'taken@example.com');
  await page.fill('input[name=password]', PASSWORD);
  await submit(page);
  await says(page, /That email address is taken/);
  await page.fill('input[name=emailAddress]', 'new@example.com');
  await submit(page);
  await typeMailedCode(page, emulator, 'new@example.com');
  await page.waitForURL('/protected');
  const { id = '' } = emulator.store.users.find(({ email }) => email === 'new@example.com') ?? {};
  expect(await text(page, 'server')).toBe(id);
  await shows(page, 'browser', id);

  const other = await newPage(application.url, page.context());
  await other.goto('/');
  await shows(other, 'browser', id);
  await other.evaluate('Clerk.signOut()');
  for (const tab of [page, other]) await shows(tab, 'browser', 'signed out');
  await page.goto('/');
  expect(await text(page, 'server')).toBe('signed out');
});

test('The sign-in page rejects wrong credentials, and resets a forgotten password with a mailed code', async () => {
  const { id } = emulator.createUser({ email: 'forgot@example.com', password: 'the old password' });
  const elsewhere = emulator.createSession(id);
  const page = await newPage(application.url);
  await page.goto('/protected');
  await page.fill('input[name=identifier]', 'nobody@example.com');
  await submit(page);
  await says(page, /Couldn't find your account/);
  await signIn(page, 'forgot@example.com', 'wrong horse battery');
  await says(page, /Password is incorrect/);
  await page.getByText('Forgot password?').click();
  await page.getByRole('button', { name: 'Reset your password' }).click();
  await typeMailedCode(page, emulator, 'forgot@example.com');
  await page.waitForURL('**/reset-password**');
  await page.fill('input[name=password]', PASSWORD);
  await page.fill('input[name=confirmPassword]', PASSWORD);
  await submit(page);
  await page.waitForURL('/protected');
  await shows(page, 'browser', id);
  expect(emulator.store.sessions.get(elsewhere.id)?.status).toBe('revoked');
});

test('The profile page changes the name and the password and deletes the account', async () => {
  const user = emulator.createUser({ email: 'profile@example.com', password: PASSWORD });
  const page = await newPage(application.url);
  await signInAndReturn(page, 'profile@example.com');
  await page.goto(`${emulator.url}/user`);
  await page.getByText('Update profile').click();
  await page.fill('input[name=firstName]', 'Grace');
  await submit(page);
  await expect.poll(() => emulator.store.users.get(user.id)?.firstName).toBe('Grace');
  await page.getByRole('button', { name: 'Security' }).click();
  await page.getByText('This device').waitFor();
  await page.getByRole('button', { name: 'Update password' }).click();
  await page.fill('input[name=currentPassword]', PASSWORD);
  await page.fill('input[name=newPassword]', 'another horse battery');
  await page.fill('input[name=confirmPassword]', 'another horse battery');
  await submit(page);
  await page.locator('input[name=currentPassword]').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Delete account' }).click();
  await page.fill('input[name=deleteConfirmation]', 'Delete account');
  await submit(page);
  await expect.poll(() => emulator.store.users.get(user.id)).toBeUndefined();
});

test('A user creates an organization on the portal, and the server of the application reads it from the session', async () => {
  const { id } = emulator.createUser({ email: 'boss@example.com', password: PASSWORD });
  const page = await newPage(application.url);
  await signInAndReturn(page, 'boss@example.com');
  await page.goto(`${emulator.url}/create-organization`);
  await page.fill('input[name=name]', 'Acme Inc');
  await submit(page);
  await page.getByRole('button', { name: 'Skip' }).click();
  await expect.poll(() => emulator.store.sessions.all().at(-1)?.organizationId).not.toBeNull();
  await page.goto(`${application.url}/protected`);
  await shows(page, 'browser', id);
  await page.evaluate('Clerk.session.getToken({ skipCache: true })');
  await page.reload();
  expect(await text(page, 'organization')).toBe('acme-inc');
});

test('A handshake replaces an expired token, and a browser whose session was revoked is signed out', async () => {
  const { id } = emulator.createUser({ email: 'late@example.com', password: PASSWORD });
  const page = await newPage(application.url);
  await signInAndReturn(page, 'late@example.com');
  const cookies = await page.context().cookies();
  const token = cookies.find(({ name }) => name === '__session')?.value ?? '';
  const { sid } = await verifyToken(token, { jwtKey: emulator.publicKeyPem });
  // Leaves the page, because an open page would replace the expired token.
  await page.goto('about:blank');
  const now = Math.floor(Date.now() / 1000);
  const claims = { azp: application.url, fva: [0, -1], sid, iat: now - 120, nbf: now - 130, exp: now - 60 };
  const expired = tokenFor(emulator, id, claims, { header: { cat: 'cl_B7d4PD111AAA' } });
  const sessions = cookies.filter(({ name }) => name.startsWith('__session'));
  await page.context().addCookies(sessions.map((cookie) => ({ ...cookie, value: expired })));
  await page.goto('/');
  expect(await text(page, 'server')).toBe(id);
  await shows(page, 'browser', id);
  emulator.revokeSession(sid);
  await page.evaluate('Clerk.session.getToken({ skipCache: true }).catch(() => null)');
  await shows(page, 'browser', 'signed out');
});

test('The portal does not lead to a page of another machine', async () => {
  emulator.createUser({ email: 'bait@example.com', password: PASSWORD });
  const page = await newPage(emulator.url);
  await page.goto('/sign-in?redirect_url=https%3A%2F%2Fevil.example%2F');
  await signIn(page, 'bait@example.com');
  await page.getByText('Profile details').first().waitFor();
  expect(page.url()).toBe(`${emulator.url}/user`);
});

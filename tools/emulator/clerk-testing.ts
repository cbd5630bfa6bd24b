import type { Packages } from '../../tests/harness/playwright-host/host';

export const clerkTesting: Packages = { '@clerk/testing': '2.2.36' };

/**
 * Tests of Clerk's helpers for Playwright. `npm run emulator:sdks` prints a table with a row for each test title. The helper
 * `clerk.signIn({ emailAddress })` has no test, because it ignores CLERK_API_URL and calls api.clerk.com.
 */
export const clerkTestingSpec = `
import { randomUUID } from 'node:crypto';
import { createClerkClient } from '@clerk/backend';
import { clerk, clerkSetup, setupClerkTestingToken } from '@clerk/testing/playwright';
import { expect, test } from 'playwright/test';

const password = 'correct horse battery';
const { CLERK_API_URL: apiUrl, CLERK_SECRET_KEY: secretKey } = process.env;
const { users, signInTokens } = createClerkClient({ apiUrl, secretKey, telemetry: { disabled: true } });

async function newUser() {
  const emailAddress = \`\${randomUUID()}+clerk_test@example.com\`;
  return { emailAddress, id: (await users.createUser({ emailAddress: [emailAddress], password })).id };
}

async function signIn(page, signInParams) {
  await page.goto('/');
  await clerk.signIn({ page, signInParams });
  await page.reload();
}

async function expectUser(page, id) {
  await expect(page.locator('#server')).toHaveText(id);
  await expect(page.locator('#browser')).toHaveText(id);
}

test.beforeEach(() => clerkSetup({ dotenv: false }));

test('clerkSetup', () => {
  expect(process.env.CLERK_TESTING_TOKEN).toMatch(/./);
  expect(process.env.CLERK_FAPI).toMatch(/./);
});

test('setupClerkTestingToken', async ({ page }) => {
  await setupClerkTestingToken({ page });
  await page.goto('/');
  await expect(page.locator('#browser')).toHaveText('signed out');
});

test('clerk.loaded', async ({ page }) => {
  await page.goto('/');
  await clerk.loaded({ page });
  expect(await page.evaluate('Clerk.version')).toMatch(/^6/);
});

test('clerk.signIn with a password', async ({ page }) => {
  const { emailAddress, id } = await newUser();
  await signIn(page, { strategy: 'password', identifier: emailAddress, password });
  await expectUser(page, id);
});

test('clerk.signIn with a mailed code', async ({ page }) => {
  const { emailAddress, id } = await newUser();
  await signIn(page, { strategy: 'email_code', identifier: emailAddress });
  await expectUser(page, id);
});

test('clerk.signIn with a ticket', async ({ page }) => {
  const { id: userId } = await newUser();
  const { token } = await signInTokens.createSignInToken({ userId, expiresInSeconds: 60 });
  await signIn(page, { strategy: 'ticket', ticket: token });
  await expectUser(page, userId);
});

test('clerk.signOut', async ({ page }) => {
  const { emailAddress, id } = await newUser();
  await signIn(page, { strategy: 'password', identifier: emailAddress, password });
  await expectUser(page, id);
  await clerk.signOut({ page }); // Loads the page again.
  await expectUser(page, 'signed out');
});
`;

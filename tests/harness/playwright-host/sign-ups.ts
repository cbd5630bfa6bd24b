import { randomUUID } from 'node:crypto';
import { type EmulatorFixtures, fixtures } from 'clerk-emulator/playwright';
import { test as base, expect } from 'playwright/test';

// host.ts copies this file into a separate application.

const test = base.extend<EmulatorFixtures>(fixtures);
const users = new Set<string>();

/** Returns a script that signs a user up with the browser SDK. The code of an address with `+clerk_test` is always 424242. */
const signUp = (email: string) => `(async () => {
  const signUp = await Clerk.client.signUp.create({ emailAddress: '${email}', password: 'correct horse battery' });
  await signUp.prepareEmailAddressVerification({ strategy: 'email_code' });
  const { createdSessionId, createdUserId } = await signUp.attemptEmailAddressVerification({ code: '424242' });
  await Clerk.setActive({ session: createdSessionId });
  return createdUserId;
})()`;

for (let number = 1; number <= Number(process.env['SIGN_UPS']); number += 1) {
  test(`After a sign-up in the browser, the page shows the new user (${number})`, async ({ page }) => {
    await page.goto('/');
    await expect(page.locator('#browser')).toHaveText('signed out');
    const id = await page.evaluate<string>(signUp(`${randomUUID()}+clerk_test@example.com`));
    expect(users).not.toContain(id);
    users.add(id);
    await page.reload();
    await expect(page.locator('#server')).toHaveText(id);
    await expect(page.locator('#browser')).toHaveText(id);
  });

  test(`The page shows the new user that signedInAs() created (${number})`, async ({ page, signedInAs }) => {
    const { id } = await signedInAs();
    expect(users).not.toContain(id);
    users.add(id);
    await page.goto('/');
    await expect(page.locator('#server')).toHaveText(id);
    await expect(page.locator('#browser')).toHaveText(id);
  });
}

test('A user can sign in again after the browser has lost its cookies', async ({
  context,
  page,
  signedInAs,
}, { workerIndex }) => {
  const email = `worker-${workerIndex}@example.com`;
  const user = await signedInAs({ email, password: 'correct horse battery' });
  await context.clearCookies();
  await page.goto('/');
  await expect(page.locator('#server')).toHaveText('signed out');
  expect(await signedInAs(user)).toEqual(user);
  await page.goto('/');
  await expect(page.locator('#server')).toHaveText(user.id);
});

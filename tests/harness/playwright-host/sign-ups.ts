import { type EmulatorFixtures, fixtures } from 'clerk-emulator/playwright';
import { test as base, expect } from 'playwright/test';

// host.ts copies this file into a separate application.

const test = base.extend<EmulatorFixtures>(fixtures);
const users = new Set<string>();

for (let number = 1; number <= Number(process.env['SIGN_UPS']); number += 1) {
  test(`A page shows the id of a new user that is signed in (${number})`, async ({ page, signedInAs }) => {
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

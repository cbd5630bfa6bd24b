import { writeFileSync } from 'node:fs';
import { hashSync } from 'bcryptjs';
import { betterAuthOptions, startMove } from '../harness/better-auth';
import { PASSWORD, shownLink, signInNewUser } from '../harness/browser/browser';
import { expect, test } from '../harness/browser/test';

test.use({ serviceOptions: await betterAuthOptions() });

test('A user of Clerk moves, signs in at Better Auth with the same password, and sees the same internal id in both tabs', async ({
  page,
  context,
  service,
}, info) => {
  const id = await signInNewUser(page, service, 'ada@example.com');
  const before = await shownLink(page);
  expect(before.identityProviderUserId).toBe(id);

  const passwords = info.outputPath('users.csv');
  writeFileSync(passwords, `id,password_digest,password_hasher\n${id},${hashSync(PASSWORD, 4)},bcrypt\n`);
  const args = ['--map', info.outputPath('map.csv'), '--passwords', passwords];
  const { exited, output } = startMove(args, service.environment);
  expect(await exited, output()).toBe(0);
  await page.reload();
  expect(await shownLink(page)).toEqual(before);

  const tab = await context.newPage();
  await tab.goto('/login');
  await tab.getByLabel('E-mail address').fill('ada@example.com');
  await tab.getByLabel('Password').fill(PASSWORD);
  await tab.getByRole('button', { name: 'Log in' }).click();
  await tab.waitForURL('/');
  await tab.goto('/account');
  const after = await shownLink(tab);
  expect(after.userId).toBe(before.userId);
  await page.reload();
  expect((await shownLink(page)).userId).toBe(before.userId);
});

import { codeOnConsole, shownLink, signUp } from '../harness/browser/browser';
import { test as base, expect } from '../harness/browser/test';
import { createLocalStack, type Details } from '../harness/stack';

// The local stack consists of the service and its dependencies on this machine. `npm run dev` starts it.
const test = base.extend<object, { stack: Details }>({
  stack: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright requires this pattern
    async ({}, use) => {
      const local = createLocalStack();
      const { details } = await local.start('dev');
      await use(details);
      await local.remove();
    },
    { scope: 'worker', timeout: 180_000 },
  ],
  baseURL: ({ stack }, use) => use(stack.app),
});

test('A user of the local stack signs up in the browser. The console shows the webhook delivery, and no page has an issue', async ({
  page,
  context,
  stack: { identityProvider },
  expectedErrors,
}) => {
  test.slow(); // next dev compiles each page
  expectedErrors.push(/status of 404 .*\/no-such-page/);
  const email = 'newcomer@example.com';
  const console = await context.newPage();
  await console.goto(identityProvider.consoleUrl);
  await signUp(page, email, () => codeOnConsole(console, email));
  await shownLink(page);
  const about = console.locator('.deliveries > li').filter({ hasText: email });
  const delivery = about.filter({ has: console.getByText('user.created', { exact: true }) });
  await delivery.locator('summary').getByText('HTTP 200').waitFor();

  for (const address of ['/account', '/', '/docs', '/sign-in', '/no-such-page']) {
    await page.goto(address);
    // If React finds an issue while it hydrates the page, next dev shows it before the browser SDK has loaded.
    if (/account|sign-in/.test(address)) await page.waitForFunction('window.Clerk?.loaded');
    await page.locator('nextjs-portal').waitFor({ state: 'attached' });
    const issues = page.locator('nextjs-portal [data-issues-open]');
    expect(await issues.allInnerTexts(), address).toEqual([]);
  }
});

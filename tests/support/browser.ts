import type { Browser, BrowserContextOptions, Page } from 'playwright';
import { expect, vi } from 'vitest';
import type { TestService } from './service';

export const PASSWORD = 'correct horse battery staple';

interface Visit extends BrowserContextOptions {
  /** Console errors that the test is about, such as the browser's own line for an answer of 500. */
  readonly expected?: readonly RegExp[];
}

/**
 * Runs a test in a browser of its own, signed out, and closes it. The test fails if the page logs an error or throws,
 * breaks its Content-Security-Policy, or asks any host but the service for anything.
 */
export async function visit(
  browser: Browser,
  { url }: Pick<TestService, 'url'>,
  { expected = [], ...options }: Visit,
  body: (page: Page) => Promise<void>,
): Promise<void> {
  const problems: string[] = [];
  const context = await browser.newContext({ baseURL: url, reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(60_000);
  context.on('console', (message) => {
    const text = `${message.text()} (${message.location().url})`;
    if (message.type() === 'error' && !expected.some((pattern) => pattern.test(text))) problems.push(text);
  });
  context.on('weberror', (thrown) => problems.push(`thrown: ${thrown.error().message}`));
  context.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (/^(?:https?|wss?):$/.test(protocol) && origin !== url) problems.push(`foreign: ${request.url()}`);
  });
  try {
    // Not every violation is logged: a blocked `eval` that the code recovers from is not.
    await context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (violation) => {
        const { violatedDirective, blockedURI, sourceFile } = violation;
        throw new Error(`policy: ${violatedDirective} ${blockedURI} in ${sourceFile}`);
      });
    });
    const page = await context.newPage();
    await body(page);
  } finally {
    await context.close();
  }
  expect(problems, 'what the page did wrong').toEqual([]);
}

/** Signs up through the prebuilt form, with the code that the identity provider mailed; ends on /account. */
export async function signUp(page: Page, { idp }: TestService, email: string): Promise<void> {
  await page.goto('/sign-up');
  await page.getByLabel('Email address').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Continue' }).click();
  const code = page.getByLabel('Enter verification code');
  await code.waitFor();
  // The form shows the field before it asks for the mail.
  const mail = () => idp.store.mails.all().findLast(({ to }) => to === email);
  await expect.poll(mail).toBeDefined();
  // The form may replace the field while the mail is under way, and with it what was typed.
  await vi.waitFor(
    async () => {
      if (new URL(page.url()).pathname !== '/account') {
        await code.fill('', { timeout: 2_000 });
        await code.fill(mail()?.code ?? '', { timeout: 2_000 });
      }
      await page.waitForURL('/account', { timeout: 5_000 });
    },
    { timeout: 60_000, interval: 100 },
  );
}

/** Signs in through the prebuilt form; ends where the form leads. */
export async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.goto('/sign-in?redirect_url=%2Faccount');
  await page.getByLabel('Email address').fill(email);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
}

/** What /account says of the link, once it does. */
export async function shownLink(page: Page) {
  const value = (term: string) => page.locator(`dt:text-is("${term}") + dd`);
  return {
    identityProviderUserId: await value('Identity-provider user id').locator('code').innerText(),
    userId: await value('Internal user id').locator('code').innerText(),
    origin: await value('How this answer came about').locator('strong').innerText(),
  };
}

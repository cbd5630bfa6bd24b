import axe from 'axe-core';
import type { Emulator } from 'clerk-emulator';
import { signToken } from 'clerk-emulator/testing';
import type { Browser, BrowserContextOptions, Page } from 'playwright';
import { z } from 'zod';
import { waitUntil } from '../../../dev/system/processes';
import type { TestService } from '../service';

export const PASSWORD = 'correct horse battery staple';

interface Visit extends BrowserContextOptions {
  /** Errors that the test is about, such as the browser's own line for an answer of 500. */
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
  const logged = (text: string) => {
    if (!expected.some((pattern) => pattern.test(text))) problems.push(text);
  };
  context.on('console', (message) => {
    if (message.type() === 'error') logged(`${message.text()} (${message.location().url})`);
  });
  context.on('weberror', (thrown) => logged(`thrown: ${thrown.error().message}`));
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
  if (problems.length > 0) throw new Error(`What the page did wrong:\n${problems.join('\n')}`);
}

/** Signs up through the prebuilt form, with the code that was mailed; ends on /account. */
export async function signUp(page: Page, email: string, readCode: () => Promise<string>): Promise<void> {
  await page.goto('/sign-up');
  await page.getByLabel('Email address').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  // When the password field loses the focus the form grows, and the button leaves a mouse that is pressed.
  await page.getByRole('button', { name: 'Continue' }).press('Enter');
  const field = page.getByLabel('Enter verification code');
  await field.waitFor();
  // The form shows the field before it asks for the mail.
  const code = await readCode();
  const enterCode = async () => {
    if (new URL(page.url()).pathname !== '/account') {
      await field.fill('', { timeout: 2_000 });
      await field.fill(code, { timeout: 2_000 });
    }
    await page.waitForURL('/account', { timeout: 5_000 });
  };
  // The form may replace the field while the mail is under way, and with it what was typed.
  const arrives = () =>
    enterCode().then(
      () => true,
      () => false,
    );
  if (!(await waitUntil(arrives, 60_000)))
    throw new Error(`The code did not lead to /account: ${page.url()}`);
}

/** The code that was last mailed to an address, as soon as there is one. */
export async function mailedCode(email: string, { store }: Pick<Emulator, 'store'>): Promise<string> {
  let code: string | undefined;
  await waitUntil(() => {
    code = store.mails.all().findLast(({ to }) => to === email)?.code;
    return code !== undefined;
  }, 60_000);
  if (code === undefined) throw new Error('No code was mailed');
  return code;
}

/** The same, as the provider's console shows it. */
export const codeOnConsole = (console: Page, email: string): Promise<string> =>
  console.getByRole('listitem').filter({ hasText: email }).locator('.mail-code').innerText();

/** Signs in through the prebuilt form; ends where the form leads. */
export async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.goto('/sign-in?redirect_url=%2Faccount');
  await page.getByLabel('Email address').fill(email);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
}

const BrowserToken = z.object({ id: z.string() });

/**
 * Signs in by the provider's own API, and arrives as from the provider: for a test that is about something else than the
 * form, which is most of what a sign-in costs.
 */
export async function signInWithoutForm(page: Page, email: string, target = '/account'): Promise<void> {
  const post = (path: string, form: Record<string, string> = {}) =>
    // A kept connection may end at this very moment.
    page.request.post(`/__clerk/v1/${path}`, { form, maxRetries: 1 });
  // How a development instance knows a browser; in production it goes by a cookie, and does not look at this.
  const { id } = BrowserToken.parse(await (await post('dev_browser')).json());
  const query = new URLSearchParams({ __clerk_db_jwt: id });
  const answer = await post(`client/sign_ins?${query}`, {
    strategy: 'password',
    identifier: email,
    password: PASSWORD,
  });
  if (!answer.ok()) throw new Error(`Nobody was signed in: ${await answer.text()}`);
  query.set('redirect_url', new URL(target, answer.url()).href);
  await page.goto(`/__clerk/v1/client/handshake?${query}`);
}

const Claims = z.looseObject({ iat: z.number(), nbf: z.number(), exp: z.number() });

/** Returns the session cookies of a browser, with tokens that expired an hour ago. */
export async function expiredSessionCookies(page: Page, { url, idp }: Pick<TestService, 'url' | 'idp'>) {
  const expired = (token: string) => {
    const claims = Claims.parse(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()));
    const [iat, nbf, exp] = [claims.iat - 3600, claims.nbf - 3600, claims.exp - 3600];
    return signToken(idp, { ...claims, iat, nbf, exp });
  };
  const cookies = await page.context().cookies(url);
  return cookies
    .filter(({ name }) => /^__session(?:_|$)/.test(name))
    .map((cookie) => ({ ...cookie, value: expired(cookie.value) }));
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

const AxeResult = z.object({
  violations: z.array(z.object({ id: z.string(), nodes: z.array(z.object({ html: z.string() })) })),
});

const SETTLED_MS = 5_000;
/** What is judged in each: in dark, what light has not told already. */
const SCHEMES = [
  { colorScheme: 'light', options: {} },
  { colorScheme: 'dark', options: { runOnly: ['color-contrast', 'link-in-text-block'] } },
] as const;

/** What axe-core finds wrong now, by rule. Evaluated from outside the page, where its policy has no say. */
async function violationsNow(page: Page, options: object): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = AxeResult.parse(await page.evaluate(`axe.run(${JSON.stringify(options)})`));
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/**
 * What axe-core finds wrong with the page in light, and with its colours in dark, by rule, and still finds some seconds
 * later: after a navigation on the client a page has no title for a moment. Leaves the page in light.
 */
export async function axeViolations(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const { colorScheme, options } of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    let violations: string[] = [];
    await waitUntil(async () => {
      violations = await violationsNow(page, options);
      return violations.length === 0;
    }, SETTLED_MS);
    found.push(...violations.map((violation) => `${colorScheme}: ${violation}`));
  }
  await page.emulateMedia({ colorScheme: 'light' });
  return found;
}

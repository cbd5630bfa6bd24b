import axe from 'axe-core';
import type { Emulator } from 'clerk-emulator';
import { signIn as signInContext } from 'clerk-emulator/playwright';
import { signToken } from 'clerk-emulator/testing';
import type { Page } from 'playwright';
import { z } from 'zod';
import { waitUntil } from '../../../dev/system/processes';
import type { TestService } from '../service';

export const PASSWORD = 'correct horse battery staple';

/** Signs up through Clerk's sign-up form with the emailed code, and waits until the browser shows /account. */
export async function signUp(page: Page, email: string, readCode: () => Promise<string>): Promise<void> {
  await page.goto('/sign-up');
  await page.getByLabel('Email address').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  // A mouse click could miss the button. The button moves because the form grows when the password field loses the focus.
  await page.getByRole('button', { name: 'Continue' }).press('Enter');
  const field = page.getByLabel('Enter verification code');
  await field.waitFor();
  // The form shows the field before it requests the email with the code, so `readCode` has to wait for the email.
  const code = await readCode();
  const enterCode = async () => {
    if (new URL(page.url()).pathname !== '/account') {
      await field.fill('', { timeout: 2_000 });
      await field.fill(code, { timeout: 2_000 });
    }
    await page.waitForURL('/account', { timeout: 5_000 });
  };
  // When the form receives the response to its request for the email, it may replace the field and discard the typed code. The
  // code is therefore entered again until the browser shows /account.
  const codeIsAccepted = () =>
    enterCode().then(
      () => true,
      () => false,
    );
  if (!(await waitUntil(codeIsAccepted, 60_000)))
    throw new Error(`The code did not lead to /account: ${page.url()}`);
}

/** Waits for an email to an address and returns the code of the latest email. */
export async function mailedCode(email: string, { store }: Pick<Emulator, 'store'>): Promise<string> {
  let code: string | undefined;
  await waitUntil(() => {
    code = store.mails.all().findLast(({ to }) => to === email)?.code;
    return code !== undefined;
  }, 60_000);
  if (code === undefined) throw new Error('No code was mailed');
  return code;
}

/** Returns the emailed code from the console. The console is a web page of the emulator and lists the emails. */
export const codeOnConsole = (console: Page, email: string): Promise<string> =>
  console.getByRole('listitem').filter({ hasText: email }).locator('.mail-code').innerText();

/** Signs in through Clerk's sign-in form. */
export async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.goto('/sign-in?redirect_url=%2Faccount');
  await page.getByLabel('Email address').fill(email);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
}

/**
 * Creates a user, signs the user in through the proxied Frontend API of the identity provider, which is much faster than the
 * form, and opens `target`. Returns the user's id at the identity provider.
 */
export async function signInNewUser(
  page: Page,
  { idp }: Pick<TestService, 'idp'>,
  email: string,
  target = '/account',
): Promise<string> {
  const { id } = idp.createUser({ email, password: PASSWORD });
  await signInContext(page.context(), {
    frontendApi: '/__clerk',
    credentials: { strategy: 'password', identifier: email, password: PASSWORD },
  });
  await page.goto(target);
  return id;
}

/** Creates an organization with the provider's browser SDK, and makes it the active one of the session. */
export async function activateNewOrganization(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Open user menu' }).waitFor();
  await page.evaluate(`Clerk.createOrganization({ name: 'Acme' })
    .then((organization) => Clerk.setActive({ organization }))`);
}

const Claims = z.looseObject({ iat: z.number(), nbf: z.number(), exp: z.number() });

/**
 * Returns copies of the browser's session cookies with expired tokens. The times `iat`, `nbf` and `exp` in these tokens are an
 * hour earlier than in the original tokens.
 */
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

/** Returns the id that /account shows under a name. */
export const shownId = (page: Page, name: string): Promise<string> =>
  page.locator(`dt:text-is("${name}") + dd code`).innerText();

/** Returns both ids of the user that /account shows. */
export const shownLink = async (page: Page) => ({
  identityProviderUserId: await shownId(page, 'Identity-provider user id'),
  userId: await shownId(page, 'Internal user id'),
});

const AxeResult = z.object({
  violations: z.array(z.object({ id: z.string(), nodes: z.array(z.object({ html: z.string() })) })),
});

/** Maximum time for a violation to disappear. */
const SETTLE_MS = 5_000;
/** axe-core options for each color scheme. The dark run checks only the rules that depend on colors. */
const SCHEMES = [
  { colorScheme: 'light', options: {} },
  { colorScheme: 'dark', options: { runOnly: ['color-contrast', 'link-in-text-block'] } },
] as const;

/**
 * Returns the current axe-core violations. The Content-Security-Policy of the page does not apply to the axe-core script,
 * because Playwright runs the script through the debugging protocol of the browser.
 */
async function violationsNow(page: Page, options: object): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = AxeResult.parse(await page.evaluate(`axe.run(${JSON.stringify(options)})`));
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/**
 * Returns all axe-core violations of the page in the light color scheme, and its color violations in the dark color
 * scheme. Ignores violations that disappear within some seconds, because a page has no title for a moment after a
 * client-side navigation. Sets the light color scheme at the end.
 */
export async function axeViolations(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const { colorScheme, options } of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    let violations: string[] = [];
    await waitUntil(async () => {
      violations = await violationsNow(page, options);
      return violations.length === 0;
    }, SETTLE_MS);
    found.push(...violations.map((violation) => `${colorScheme}: ${violation}`));
  }
  await page.emulateMedia({ colorScheme: 'light' });
  return found;
}

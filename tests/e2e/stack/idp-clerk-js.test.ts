import { createHash } from 'node:crypto';
import { createClerkClient } from '@clerk/backend';
import { clerkFrontendApiProxy } from '@clerk/backend/proxy';
import { type Emulator, type EmulatorOptions, generateSigningKeyPem } from 'clerk-emulator';
import type { BrowserContext, Page } from 'playwright';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { mailedCode, PASSWORD, signInWithoutForm } from '../../harness/browser/browser';
import { launchBrowser } from '../../harness/browser/chromium';
import { startFetchServer } from '../../harness/dependencies/stub-server';
import { startProvider } from '../../harness/identity-provider';
import { SECRET_KEY as secretKey } from '../../harness/keys';
import { tokenFor } from '../../harness/requests';
import { stopAfterAll, stopAfterTest } from '../../vitest/stop-after-all';

const chrome = await launchBrowser();
afterAll(() => chrome.close());

/**
 * Returns the HTML of a page. The page loads Clerk's browser SDK from the origin of the application and mounts the given
 * component, if any.
 */
function page(publishableKey: string, userId: string | null, component: string | undefined): string {
  const ui = component
    ? '<script src="/__clerk/npm/@clerk/ui@1/dist/ui.browser.js" crossorigin="anonymous"></script>'
    : '';
  const attributes = `data-clerk-publishable-key="${publishableKey}" data-clerk-proxy-url="/__clerk"`;
  return `<!doctype html><html lang="en"><title>test</title><link rel="icon" href="data:,">
    <p id="server">${userId ?? 'nobody'}</p><p id="browser"></p><div id="component"></div>
    ${ui}<script src="/__clerk/npm/@clerk/clerk-js@6/dist/clerk.browser.js" crossorigin="anonymous" ${attributes}></script>
    <script type="module">
      const ui = ${component ? '{ ClerkUI: window.__internal_ClerkUICtor }' : 'undefined'};
      await Clerk.load({ ui, signInUrl: '/sign-in', signUpUrl: '/sign-up', telemetry: false });
      Clerk.addListener(({ user }) => { document.querySelector('#browser').textContent = user?.id ?? 'nobody'; });
      const routing = { routing: 'path', path: location.pathname.match(/^\\/[^/]*/)[0] };
      const home = { fallbackRedirectUrl: '/', signUpFallbackRedirectUrl: '/', signInFallbackRedirectUrl: '/' };
      ${component ? `Clerk.mount${component}(document.querySelector('#component'), { ...routing, ...home });` : ''}
    </script></html>`;
}

const componentOf = (path: string) =>
  ({ '/sign-in': 'SignIn', '/sign-up': 'SignUp', '/account': 'UserProfile', '/menu': 'UserButton' })[
    /^\/[^/]*/.exec(path)?.[0] ?? ''
  ];

/** Starts an application that uses Clerk's server SDK to proxy the Frontend API and to authenticate page requests by cookie. */
function startApplication(provider: Emulator, publishableKey: string) {
  const clerk = createClerkClient({
    secretKey,
    publishableKey,
    apiUrl: provider.url,
    telemetry: { disabled: true },
  });
  return startFetchServer(async (request) => {
    const url = new URL(request.url);
    if (url.pathname.startsWith('/__clerk')) {
      return clerkFrontendApiProxy(request, { publishableKey, secretKey, fapiUrl: provider.url });
    }
    const state = await clerk.authenticateRequest(request, { proxyUrl: `${url.origin}/__clerk` });
    if (state.headers.has('location')) return new Response(null, { status: 307, headers: state.headers });
    const html = page(publishableKey, state.toAuth()?.userId ?? null, componentOf(url.pathname));
    state.headers.set('content-type', 'text/html');
    return new Response(html, { headers: state.headers });
  });
}

async function typeCode(tab: Page, code: string): Promise<void> {
  await tab.locator('input[autocomplete="one-time-code"]').first().focus();
  await tab.keyboard.type(code);
}

const signedOut = (tab: Page) =>
  tab.waitForFunction(() => document.querySelector('#browser')?.textContent === 'nobody');

// Presses Enter instead of clicking. The form grows when the password field loses the focus, so the button moves away from
// the mouse pointer.
const submit = (tab: Page) => tab.locator('.cl-formButtonPrimary').press('Enter');

async function signedInAs(tab: Page): Promise<string | null> {
  await tab.waitForFunction(() => document.querySelector('#browser')?.textContent?.startsWith('user_'));
  return tab.locator('#browser').textContent();
}

async function signIn(tab: Page, email: string): Promise<string | null> {
  await tab.goto('/sign-in');
  await tab.fill('input[name=identifier]', email);
  await submit(tab);
  await tab.fill('input[name=password]', PASSWORD);
  await submit(tab);
  return signedInAs(tab);
}

/** Signs in without the form and opens a page without a component. */
async function arriveSignedIn(tab: Page, email: string): Promise<string | null> {
  await signInWithoutForm(tab, email, '/');
  return signedInAs(tab);
}

/** Starts an emulator and an application that uses this emulator. Also returns functions that use browser tabs. */
async function startInstance(publishableKey: string, options: Partial<EmulatorOptions> = {}) {
  const provider = stopAfterAll(await startProvider({ publishableKey, sessionTokenSeconds: 20, ...options }));
  const application = stopAfterAll(await startApplication(provider, publishableKey));
  return {
    provider,
    application,
    /** Opens a tab in `context` or in a new browser profile. Records each error and each request to another host. */
    async newTab(context?: BrowserContext) {
      const options = { baseURL: application.url, reducedMotion: 'reduce' } as const;
      const profile = context ?? (await chrome.newContext(options));
      onTestFinished(() => profile.close());
      const tab = await profile.newPage();
      tab.setDefaultTimeout(60_000);
      const foreign: string[] = [];
      const errors: string[] = [];
      tab.on('request', (request) => {
        if (!request.url().startsWith(application.url) && request.url().startsWith('http'))
          foreign.push(request.url());
      });
      tab.on('pageerror', (error) => errors.push(error.message));
      tab.on('console', (message) => {
        if (message.type() === 'error') errors.push(message.text());
      });
      return { tab, profile, foreign, errors };
    },
    /** Waits until the form shows the field for the code. Returns the emailed code. */
    async awaitCode(tab: Page, email: string) {
      await tab.locator('input[autocomplete="one-time-code"]').first().waitFor();
      return mailedCode(email, provider);
    },
  };
}

const development = {
  style: 'development',
  publishableKey: `pk_test_${btoa('browser.clerk.accounts.dev$')}`,
};
const production = { style: 'production', publishableKey: `pk_live_${btoa('clerk.browser.example$')}` };

describe.each([development, production])(
  'A browser with a $style instance',
  async ({ publishableKey, style }) => {
    const { provider, application, newTab } = await startInstance(publishableKey);

    test(`With a ${style} instance, a sign-out in one tab signs out every tab`, async () => {
      provider.createUser({ email: 'tabs@example.com', password: PASSWORD });
      const { tab: first, profile } = await newTab();
      await arriveSignedIn(first, 'tabs@example.com');
      const { tab: second } = await newTab(profile);
      await second.goto('/menu');
      await signedInAs(second);
      await second.locator('.cl-userButtonTrigger').click();
      await second.getByText('Sign out').click();
      for (const tab of [first, second]) await signedOut(tab);
      await first.goto('/');
      expect(await first.locator('#server').textContent()).toBe('nobody');
    });

    test(`With a ${style} instance, a sign-in form uses the session of another tab if the user has signed in there before the form is submitted`, async () => {
      const user = provider.createUser({ email: 'join@example.com', password: PASSWORD });
      const { tab: first, profile } = await newTab();
      await first.goto('/sign-in');
      const { tab: second } = await newTab(profile);
      await second.goto('/sign-in');
      await second.locator('input[name=identifier]').waitFor();
      await signIn(first, 'join@example.com');
      await second.fill('input[name=identifier]', 'join@example.com');
      await submit(second);
      expect(await signedInAs(second)).toBe(user.id);
    });

    test(`With a ${style} instance, getToken with skipCache replaces the session token of an open page, and a redirect by the server SDK replaces an expired token`, async () => {
      const user = provider.createUser({ email: 'late@example.com', password: PASSWORD });
      const { tab, profile, foreign, errors } = await newTab();
      await arriveSignedIn(tab, 'late@example.com');
      const tokenOf = async () =>
        (await profile.cookies()).find(({ name }) => name === '__session')?.value ?? '';
      const before = await tokenOf();
      await tab.evaluate(() => Reflect.get(window, 'Clerk').session.getToken({ skipCache: true }));
      const refreshed = await tokenOf();
      expect(refreshed).not.toBe(before);

      // Leaves the page, because an open page would replace the expired token that this test sets next.
      await tab.goto('about:blank');
      const session = provider.store.sessions.all().find(({ userId }) => userId === user.id);
      const now = Math.floor(Date.now() / 1000);
      const times = { iat: now - 120, nbf: now - 130, exp: now - 60 };
      const claims = { azp: application.url, fva: [0, -1], sid: session?.id, ...times };
      const expired = tokenFor(provider, user.id, claims, { header: { cat: 'cl_B7d4PD111AAA' } });
      const cookies = await profile.cookies();
      await profile.addCookies(
        cookies
          .filter(({ name }) => name.startsWith('__session'))
          .map((cookie) => ({ ...cookie, value: expired })),
      );
      await tab.goto('/account');
      expect(await tab.locator('#server').textContent()).toBe(user.id);
      expect(tab.url()).toBe(`${application.url}/account`);
      expect(await tokenOf()).not.toBe(expired);
      expect(foreign).toEqual([]);
      expect(errors).toEqual([]);
    });

    test(`With a ${style} instance, a browser whose session was revoked is signed out at the next refresh of the session token`, async () => {
      const user = provider.createUser({ email: 'revoked@example.com', password: PASSWORD });
      const { tab } = await newTab();
      await arriveSignedIn(tab, 'revoked@example.com');
      const session = provider.store.sessions.all().find(({ userId }) => userId === user.id);
      provider.revokeSession(session?.id ?? '');
      await tab.evaluate(() =>
        Reflect.get(window, 'Clerk')
          .session.getToken({ skipCache: true })
          .catch(() => null),
      );
      await signedOut(tab);
    });

    test(`If the database of a ${style} instance was deleted, a browser with old cookies is signed out and can sign in again`, async () => {
      const user = provider.createUser({ email: 'stale@example.com', password: PASSWORD });
      const deleted = stopAfterTest(
        await startProvider({ publishableKey, signingKeyPem: generateSigningKeyPem() }),
      );
      const stale = deleted.sessionToken(
        deleted.createSession(deleted.createUser({ email: 'stale@example.com' }).id).id,
        application.url,
      );
      const { tab, profile, errors } = await newTab();
      const values = {
        __session: stale,
        __client_uat: String(Math.floor(Date.now() / 1000)),
        __clerk_db_jwt: 'dvb_deleted',
        __client: 'dvb_deleted',
      };
      const suffix = createHash('sha1').update(publishableKey).digest('base64url').slice(0, 8);
      await profile.addCookies(
        Object.entries(values).flatMap(([name, value]) =>
          [name, `${name}_${suffix}`].map((each) => ({ name: each, value, url: application.url })),
        ),
      );
      await tab.goto('/');
      expect(await tab.locator('#server').textContent()).toBe('nobody');
      expect(await signIn(tab, 'stale@example.com')).toBe(user.id);
      await tab.goto('/account');
      expect(await tab.locator('#server').textContent()).toBe(user.id);
      expect(errors).toEqual([]);
    });
  },
);

// The forms behave the same with development and production instances, so one instance is enough.
describe('Forms', async () => {
  const { provider, newTab, awaitCode } = await startInstance(development.publishableKey);

  test('The sign-up and sign-in forms reject a wrong code, a taken address, a short password, an unknown account and a wrong password', async () => {
    provider.createUser({ email: 'there@example.com', password: PASSWORD });
    const { tab } = await newTab();
    const says = (text: RegExp) => tab.getByText(text).first().waitFor();

    await tab.goto('/sign-up');
    await tab.fill('input[name=emailAddress]', 'wrong-code@example.com');
    await tab.fill('input[name=password]', 'short');
    await submit(tab);
    await says(/8 or more characters/);
    await tab.fill('input[name=emailAddress]', 'there@example.com');
    await tab.fill('input[name=password]', PASSWORD);
    await submit(tab);
    await says(/That email address is taken/);
    await tab.fill('input[name=emailAddress]', 'wrong-code@example.com');
    await submit(tab);
    await tab.waitForURL('**/verify-email-address');
    const code = await awaitCode(tab, 'wrong-code@example.com');
    await typeCode(tab, code === '000000' ? '111111' : '000000');
    await says(/Incorrect code/);
    expect(provider.store.users.all().map(({ email }) => email)).not.toContain('wrong-code@example.com');

    await tab.goto('/sign-in');
    await tab.fill('input[name=identifier]', 'nobody@example.com');
    await submit(tab);
    await says(/Couldn't find your account/);
    await tab.fill('input[name=identifier]', 'there@example.com');
    await submit(tab);
    await tab.fill('input[name=password]', 'wrong horse battery');
    await submit(tab);
    await says(/Password is incorrect/);
    await tab.fill('input[name=password]', PASSWORD);
    await submit(tab);
    await signedInAs(tab);
  });

  test('The sign-in form accepts an emailed code', async () => {
    const user = provider.createUser({ email: 'code@example.com', password: PASSWORD });
    const { tab } = await newTab();
    await tab.goto('/sign-in');
    await tab.fill('input[name=identifier]', 'code@example.com');
    await submit(tab);
    await tab.getByText('Use another method').click();
    await tab.getByText('Email code to').click();
    await typeCode(tab, await awaitCode(tab, 'code@example.com'));
    expect(await signedInAs(tab)).toBe(user.id);
  });

  test('The sign-in form resets a forgotten password with an emailed code and ends the other sessions of the user', async () => {
    const user = provider.createUser({ email: 'forgot@example.com', password: 'the old password' });
    const elsewhere = provider.createSession(user.id);
    const { tab } = await newTab();
    await tab.goto('/sign-in');
    await tab.fill('input[name=identifier]', 'forgot@example.com');
    await submit(tab);
    await tab.getByText('Forgot password?').click();
    await tab.getByRole('button', { name: 'Reset your password' }).click();
    await typeCode(tab, await awaitCode(tab, 'forgot@example.com'));
    await tab.waitForURL('**/reset-password');
    await tab.fill('input[name=password]', PASSWORD);
    await tab.fill('input[name=confirmPassword]', PASSWORD);
    await submit(tab);
    expect(await signedInAs(tab)).toBe(user.id);
    expect(provider.store.sessions.get(elsewhere.id)?.status).toBe('revoked');

    const other = await newTab();
    expect(await arriveSignedIn(other.tab, 'forgot@example.com')).toBe(user.id);
  });

  test('The profile component changes name and password, lists devices and deletes the account', async () => {
    const user = provider.createUser({ email: 'profile@example.com', password: PASSWORD });
    const { tab, errors } = await newTab();
    await arriveSignedIn(tab, 'profile@example.com');
    await tab.goto('/account');
    await tab.getByText('Update profile').click();
    await tab.fill('input[name=firstName]', 'Grace');
    await tab.fill('input[name=lastName]', 'Hopper');
    await submit(tab);
    await tab.getByText('Grace Hopper').first().waitFor();
    expect(provider.store.users.get(user.id)).toMatchObject({ firstName: 'Grace', lastName: 'Hopper' });

    await tab.getByRole('button', { name: 'Security' }).click();
    await tab.getByText('This device').waitFor();
    await tab.getByRole('button', { name: 'Update password' }).click();
    await tab.fill('input[name=currentPassword]', PASSWORD);
    await tab.fill('input[name=newPassword]', 'another horse battery');
    await tab.fill('input[name=confirmPassword]', 'another horse battery');
    await submit(tab);
    await tab.locator('input[name=currentPassword]').waitFor({ state: 'detached' });
    expect(provider.store.users.get(user.id)?.password).not.toBe(user.password);

    await tab.getByRole('button', { name: 'Delete account' }).click();
    await tab.fill('input[name=deleteConfirmation]', 'Delete account');
    await submit(tab);
    await signedOut(tab);
    expect(provider.store.users.get(user.id)).toBeUndefined();
    expect(errors).toEqual([]);
  });
});

describe('The forms of an instance with client trust and reverification', async () => {
  const { provider, newTab, awaitCode } = await startInstance(development.publishableKey, {
    clientTrust: true,
    reverification: true,
  });

  test('With client trust, the sign-in form requests an emailed code in a new browser, but not in a known browser', async () => {
    const user = provider.createUser({ email: 'device@example.com', password: PASSWORD });
    const { tab } = await newTab();
    await tab.goto('/sign-in');
    await tab.fill('input[name=identifier]', 'device@example.com');
    await submit(tab);
    await tab.fill('input[name=password]', PASSWORD);
    await submit(tab);
    await tab.waitForURL('**/client-trust');
    await typeCode(tab, await awaitCode(tab, 'device@example.com'));
    expect(await signedInAs(tab)).toBe(user.id);
    await tab.evaluate(() => Reflect.get(window, 'Clerk').signOut());
    await signedOut(tab);
    expect(await signIn(tab, 'device@example.com')).toBe(user.id);
  });

  test('With reverification, if the session is 20 minutes old, the profile component requests the password before it deletes the account', async () => {
    const user = provider.createUser({ email: 'again@example.com', password: PASSWORD });
    const { tab } = await newTab();
    await tab.goto('/sign-in');
    await tab.locator('input[name=identifier]').waitFor();
    const { signInTokens } = createClerkClient({
      secretKey,
      apiUrl: provider.url,
      telemetry: { disabled: true },
    });
    const { token } = await signInTokens.createSignInToken({ userId: user.id, expiresInSeconds: 60 });
    await tab.evaluate(async (ticket) => {
      const clerk = Reflect.get(window, 'Clerk');
      const { createdSessionId } = await clerk.client.signIn.create({ strategy: 'ticket', ticket });
      await clerk.setActive({ session: createdSessionId });
    }, token);
    expect(await signedInAs(tab)).toBe(user.id);
    const [session] = provider.store.sessions.all().filter(({ userId }) => userId === user.id);
    if (session) provider.store.sessions.put({ ...session, createdAt: session.createdAt - 20 * 60_000 });
    await tab.goto('/account');
    await tab.getByRole('button', { name: 'Security' }).click();
    await tab.getByRole('button', { name: 'Delete account' }).click();
    await tab.fill('input[name=deleteConfirmation]', 'Delete account');
    await submit(tab);
    await tab.fill('input[name=password]', PASSWORD);
    expect(provider.store.users.get(user.id)).toBeDefined();
    await tab.locator('input[name=password]').press('Enter');
    await signedOut(tab);
    expect(provider.store.users.get(user.id)).toBeUndefined();
  });
});

describe('The forms of an instance with protect checks', async () => {
  const protectCheckUrl = 'https://protect.example/check.js';
  const { provider, newTab } = await startInstance(development.publishableKey, { protectCheckUrl });

  test('The sign-in form runs the script of a protect check (Clerk Protect) and sends the proof that the script returns', async () => {
    const user = provider.createUser({ email: 'protect@example.com', password: PASSWORD });
    const { tab, profile } = await newTab();
    await profile.route(protectCheckUrl, (route) =>
      route.fulfill({
        contentType: 'text/javascript',
        headers: { 'access-control-allow-origin': '*' },
        body: "export default async (container, { token }) => 'proof of ' + token;",
      }),
    );
    expect(await signIn(tab, 'protect@example.com')).toBe(user.id);
  });
});

import { verify } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { verifyToken } from '@clerk/backend';
import { expect, test } from 'vitest';
import type { Emulator } from '../src/emulator';
import { BrowserResponse, developmentBrowser } from './helpers/development-browser';
import { SECRET_KEY, startForTest } from './helpers/emulator';
import { CLERK_JS_FOLDER } from './helpers/folders';
import { sendRequest } from './helpers/requests';
import { temporaryFolder } from './helpers/temporary-folder';

const productionKey = `pk_live_${Buffer.from('clerk.local.example$').toString('base64')}`;
const password = 'correct horse';
const folder = temporaryFolder();

async function signedInBrowser(provider: Emulator, email: string) {
  const user = provider.createUser({ email, password });
  const browser = await developmentBrowser(provider);
  const { response } = await browser.signIn(email, { password });
  return { user, browser, sessionId: response?.created_session_id ?? '' };
}

/** Returns the headers that an application sends when it proxies the Frontend API. */
const proxied = (key: string) => ({
  'clerk-proxy-url': 'https://app.example/__clerk',
  'clerk-secret-key': key,
});

test('A browser cannot use the sessions, sign-ins and sign-ups of another browser', async () => {
  const provider = await startForTest();
  const { sessionId } = await signedInBrowser(provider, 'mine@example.com');
  const owner = await developmentBrowser(provider);
  const signIn = await owner.signIn('mine@example.com');
  const signUp = await owner.signUp('new@example.com', password);
  const stranger = await developmentBrowser(provider);
  for (const path of [
    `/v1/client/sessions/${sessionId}/tokens`,
    `/v1/client/sessions/${sessionId}/remove`,
    `/v1/client/sign_ins/${signIn.response?.id}/prepare_first_factor`,
    `/v1/client/sign_ups/${signUp.response?.id}/prepare_verification`,
  ]) {
    expect((await stranger.call('POST', path, { strategy: 'email_code' })).status, path).toBe(404);
  }
  expect(provider.store.sessions.get(sessionId)?.status).toBe('active');
  expect(provider.store.mails.all()).toEqual([]);
});

test('The Frontend API accepts requests only from a page of this machine', async () => {
  const provider = await startForTest();
  const browser = await developmentBrowser(provider);
  const from = (origin: string) => browser.call('GET', '/v1/client', {}, { origin });
  for (const origin of ['https://evil.example', 'http://localhost.evil.example', 'null']) {
    const rejected = await from(origin);
    expect(rejected, origin).toMatchObject({ status: 400, code: 'origin_invalid' });
    expect(rejected.headers.get('access-control-allow-origin')).toBeNull();
  }
  const allowed = await from('http://localhost:3000');
  expect(allowed.status).toBe(200);
  expect(allowed.headers.get('access-control-allow-origin')).toBe('http://localhost:3000');
});

test('An application that proxies the Frontend API must send the secret key of the instance', async () => {
  const provider = await startForTest();
  const browser = await developmentBrowser(provider);
  const through = (key: string) =>
    browser.call('GET', '/v1/client', {}, { origin: 'https://app.example', ...proxied(key) });
  expect((await through(SECRET_KEY)).status).toBe(200);
  expect(await through('sk_test_other')).toMatchObject({ status: 401, code: 'clerk_key_invalid' });
});

test('A handshake redirects only to a page of this machine or of the application that proxies the Frontend API', async () => {
  const provider = await startForTest();
  const { browser } = await signedInBrowser(provider, 'page@example.com');
  const handshake = (redirect: string, headers = {}) =>
    fetch(
      `${provider.url}/v1/client/handshake?${new URLSearchParams({ redirect_url: redirect, __clerk_db_jwt: browser.token })}`,
      { redirect: 'manual', headers },
    );
  for (const redirect of [
    '',
    '/',
    'https://evil.example/',
    'javascript:alert(1)',
    'http://localhost@evil.example/',
  ]) {
    const rejected = await handshake(redirect);
    expect(rejected.status, redirect).toBe(400);
    expect(rejected.headers.get('location')).toBeNull();
  }
  expect((await handshake('https://app.example/account', proxied(SECRET_KEY))).status).toBe(307);
});

test('A mailed code is invalid after ten minutes, after five wrong attempts and after its first use', async () => {
  let time = Date.now();
  const provider = await startForTest({ clock: { now: () => time, after: () => () => undefined } });
  const browser = await developmentBrowser(provider);
  const signUp = async (email: string) => {
    const { response } = await browser.signUp(email, password);
    const path = `/v1/client/sign_ups/${response?.id}`;
    await browser.call('POST', `${path}/prepare_verification`, { strategy: 'email_code' });
    const { code = '' } = provider.store.mails.all().findLast(({ to }) => to === email) ?? {};
    const attempt = (text: string) => browser.call('POST', `${path}/attempt_verification`, { code: text });
    return { path, code, wrong: code === '000000' ? '000001' : '000000', attempt };
  };

  const late = await signUp('late@example.com');
  time += 10 * 60 * 1000;
  expect((await late.attempt(late.code)).code).toBe('verification_expired');

  const guessed = await signUp('guessed@example.com');
  for (let tries = 0; tries < 5; tries += 1) {
    expect((await guessed.attempt(guessed.wrong)).code).toBe('form_code_incorrect');
  }
  expect((await guessed.attempt(guessed.code)).code).toBe('verification_failed');

  const good = await signUp('good@example.com');
  expect((await good.attempt(good.wrong)).errors?.[0]?.meta.param_name).toBe('code');
  expect((await good.attempt(good.code)).response?.status).toBe('complete');
  expect((await good.attempt(good.code)).status).toBe(400);
  expect(provider.store.users.all().map(({ email }) => email)).toEqual(['good@example.com']);
});

test('With verifyEmailAtSignUp: false, a sign-up completes without a mailed code', async () => {
  const provider = await startForTest({ verifyEmailAtSignUp: false });
  const browser = await developmentBrowser(provider);
  const done = await browser.signUp('a@example.com', password);
  expect(done.response?.status).toBe('complete');
  expect(done.client?.sessions.map(({ id }) => id)).toEqual([done.response?.created_session_id]);
});

test('An address with +clerk_test gets a fixed code in development and a random code in production', async () => {
  for (const fixed of [true, false]) {
    const provider = await startForTest(fixed ? {} : { publishableKey: productionKey });
    const post = (path: string, cookie: string, fields: Record<string, string>) =>
      fetch(`${provider.url}${path}`, {
        method: 'POST',
        headers: { cookie },
        body: new URLSearchParams(fields),
      });
    const fields = { email_address: 'a+clerk_test@example.com', password };
    const first = await post('/v1/client/sign_ups', '', fields);
    const { response } = BrowserResponse.parse(await first.json());
    const shown = first.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const token = first.headers.get('clerk-db-jwt') ?? '';
    const path = `/v1/client/sign_ups/${response?.id}/prepare_verification?__clerk_db_jwt=${token}`;
    expect((await post(path, shown, {})).status).toBe(200);
    expect(provider.store.mails.all().map(({ code }) => code === '424242')).toEqual([fixed]);
  }
});

test('A sign-in in a browser that already has a session gets an error that contains the existing session', async () => {
  const provider = await startForTest();
  const { browser, sessionId } = await signedInBrowser(provider, 'once@example.com');
  const again = await browser.signIn('once@example.com', { password });
  expect(again).toMatchObject({ status: 400, code: 'session_exists' });
  expect(again.meta?.client?.sessions.map(({ id }) => id)).toEqual([sessionId]);
});

test('A browser whose token the emulator does not know gets a new token when it signs in', async () => {
  const provider = await startForTest();
  provider.createUser({ email: 'stale@example.com', password });
  const stale = await developmentBrowser(provider, 'dvb_of_a_database_that_was_deleted');
  expect((await stale.call('GET', '/v1/client')).response).toBeNull();
  const signIn = await stale.signIn('stale@example.com', { password });
  const fresh = await developmentBrowser(provider, signIn.headers.get('clerk-db-jwt') ?? '');
  const sessionId = signIn.response?.created_session_id;
  expect((await fresh.call('GET', `/v1/client/sessions/${sessionId}`)).status).toBe(200);
});

test('A production instance identifies the browser by an HttpOnly cookie', async () => {
  const provider = await startForTest({ publishableKey: productionKey });
  provider.createUser({ email: 'live@example.com', password });
  const signIn = await fetch(`${provider.url}/v1/client/sign_ins`, {
    method: 'POST',
    body: new URLSearchParams({ identifier: 'live@example.com', password }),
  });
  const cookies = signIn.headers.getSetCookie();
  const client = cookies.find((cookie) => cookie.startsWith('__client=')) ?? '';
  expect(client).toContain('HttpOnly');
  expect(cookies.filter((cookie) => /^__client_uat(_[\w-]{8})?=[1-9]/.test(cookie))).toHaveLength(2);
  const seen = await fetch(`${provider.url}/v1/client`, { headers: { cookie: client.split(';')[0] ?? '' } });
  expect(await seen.json()).toMatchObject({ response: { sessions: [{}] } });
});

test('A native app signs in, is still signed in after its restart, and deletes the user', async () => {
  const provider = await startForTest();
  const { id } = provider.createUser({ email: 'native@example.com', password });
  const { Clerk } = createRequire(import.meta.url)(join(CLERK_JS_FOLDER, 'clerk-js-6.34.1/clerk.native.js'));
  let saved = '';
  const startApp = async () => {
    const clerk = new Clerk(provider.variables['NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY'], {
      proxyUrl: provider.url,
    });
    // The hooks do what the SDK for Expo does.
    clerk.__internal_onBeforeRequest(({ url, headers }: { url: URL; headers: Headers }) => {
      url.searchParams.append('_is_native', '1');
      headers.set('authorization', saved);
    });
    clerk.__internal_onAfterResponse((_: unknown, { headers }: Response) => {
      saved = headers.get('authorization') ?? saved;
    });
    await clerk.load({ standardBrowser: false, telemetry: false });
    return clerk;
  };

  const first = await startApp();
  const signIn = await first.client.signIn.create({ identifier: 'native@example.com', password });
  await first.setActive({ session: signIn.createdSessionId });
  expect(await verifyToken(await first.session.getToken(), { jwtKey: provider.publicKeyPem })).toMatchObject({
    sub: id,
    sid: signIn.createdSessionId,
  });
  // The SDK for Flutter verifies the signature of the token that identifies the app.
  const [header, claims, signature = ''] = saved.split('.');
  const signed = Buffer.from(`${header}.${claims}`);
  expect(verify('RSA-SHA256', signed, provider.publicKeyPem, Buffer.from(signature, 'base64url'))).toBe(true);

  const restarted = await startApp();
  expect(restarted.user.id).toBe(id);
  await restarted.user.delete();
  expect(provider.store.users.all()).toEqual([]);
});

test('After a restart with the same data file, browsers stay signed in', async () => {
  const dataFile = join(folder, 'provider.json');
  const before = await startForTest({ dataFile });
  const { browser, sessionId } = await signedInBrowser(before, 'kept@example.com');
  await before.stop();

  const after = await startForTest({ dataFile });
  const kept = await developmentBrowser(after, browser.token);
  expect((await kept.call('POST', `/v1/client/sessions/${sessionId}/touch`)).status).toBe(200);
});

test('A Frontend API request for a feature that the emulator lacks gets an error that names the operation', async () => {
  const provider = await startForTest();
  const { browser } = await signedInBrowser(provider, 'more@example.com');
  for (const [method, path] of [
    ['POST', '/v1/me/totp'],
    ['POST', '/v1/me/passkeys'],
    ['GET', '/v1/me/nothing'],
  ] as const) {
    expect(await browser.call(method, path)).toMatchObject({ status: 501, code: 'operation_not_emulated' });
  }
});

test('To prevent DNS rebinding, the emulator rejects a Host header that does not name this machine', async () => {
  const { url } = await startForTest();
  const { port } = new URL(url);
  for (const path of ['/v1/environment', '/v1/dev_browser', '/v1/users']) {
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      '192.168.0.1',
    ]) {
      const { status, body } = await sendRequest('GET', url + path, { host });
      expect([status, body.errors[0].code], host).toEqual([403, 'host_refused']);
    }
    for (const host of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`])
      expect((await sendRequest('GET', url + path, { host })).status, host).not.toBe(403);
  }
});

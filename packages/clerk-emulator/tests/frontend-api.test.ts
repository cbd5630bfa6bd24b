import { verify } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { verifyToken } from '@clerk/backend';
import { expect, test } from 'vitest';
import {
  BrowserResponse,
  developmentBrowser,
  EMAIL,
  PASSWORD,
  startWithUser,
} from './helpers/development-browser';
import { SECRET_KEY, startForTest } from './helpers/emulator';
import { CLERK_JS_FOLDER } from './helpers/folders';
import { sendRequest } from './helpers/requests';
import { temporaryFolder } from './helpers/temporary-folder';

const productionKey = `pk_live_${Buffer.from('clerk.local.example$').toString('base64')}`;
const folder = temporaryFolder();

/** Returns the headers that an application sends when it proxies the Frontend API. */
const proxied = (key: string) => ({
  'clerk-proxy-url': 'https://app.example/__clerk',
  'clerk-secret-key': key,
});

test('A browser cannot use the sessions, sign-ins and sign-ups of another browser', async () => {
  const { provider, enter } = await startWithUser();
  const { sessionId } = await enter();
  const owner = await developmentBrowser(provider);
  const signIn = await owner.signIn(EMAIL);
  const signUp = await owner.signUp('new@example.com', PASSWORD);
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

test('The Frontend API accepts requests from pages of this machine and of the application that proxies it', async () => {
  const provider = await startForTest();
  const browser = await developmentBrowser(provider);
  const origin = 'http://localhost:3000';
  const application = 'https://app.example';
  for (const [headers, status, code] of [
    [{ origin }, 200],
    [{ origin: 'https://evil.example' }, 400, 'origin_invalid'],
    [{ origin: 'http://localhost.evil.example' }, 400, 'origin_invalid'],
    [{ origin: 'null' }, 400, 'origin_invalid'],
    [{ origin, authorization: 'token' }, 400, 'origin_authorization_headers_conflict'],
    [{ origin: application, ...proxied(SECRET_KEY) }, 200],
    [{ origin: application, ...proxied('sk_test_other') }, 401, 'clerk_key_invalid'],
  ] as const) {
    const response = await browser.call('GET', '/v1/client', {}, headers);
    expect([response.status, response.code], JSON.stringify(headers)).toEqual([status, code]);
    const readable = headers.origin === origin ? origin : null;
    expect(response.headers.get('access-control-allow-origin')).toBe(readable);
  }
});

test('A handshake redirects only to a page of this machine or of the application that proxies the Frontend API', async () => {
  const { provider, enter } = await startWithUser();
  const browser = await enter();
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
    const { response } = await browser.signUp(email, PASSWORD);
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
  const done = await browser.signUp('a@example.com', PASSWORD);
  expect(done.response?.status).toBe('complete');
  expect(done.client?.sessions.map(({ id }) => id)).toEqual([done.response?.created_session_id]);
});

test('A sign-in in a browser that already has a session gets an error that contains the existing session', async () => {
  const { enter } = await startWithUser();
  const { sessionId, signIn } = await enter();
  const again = await signIn(EMAIL, { password: PASSWORD });
  expect(again).toMatchObject({ status: 400, code: 'session_exists' });
  expect(again.meta?.client?.sessions.map(({ id }) => id)).toEqual([sessionId]);
});

test('A browser whose token the emulator does not know gets a new token when it signs in', async () => {
  const { provider } = await startWithUser();
  const stale = await developmentBrowser(provider, 'dvb_of_a_database_that_was_deleted');
  expect((await stale.call('GET', '/v1/client')).response).toBeNull();
  const signIn = await stale.signIn(EMAIL, { password: PASSWORD });
  const fresh = await developmentBrowser(provider, signIn.headers.get('clerk-db-jwt') ?? '');
  const sessionId = signIn.response?.created_session_id;
  expect((await fresh.call('GET', `/v1/client/sessions/${sessionId}`)).status).toBe(200);
});

test('A production instance identifies the browser by an HttpOnly cookie, and has no fixed code for +clerk_test', async () => {
  const { provider } = await startWithUser({ publishableKey: productionKey });
  const send = async (path: string, fields: Record<string, string>, cookie = '') => {
    const init = { method: 'POST', body: new URLSearchParams(fields), headers: { cookie } };
    const response = await fetch(provider.url + path, init);
    const { response: body } = BrowserResponse.parse(await response.json());
    return { cookies: response.headers.getSetCookie(), id: body?.id };
  };
  const first = await send('/v1/client/sign_ins', { identifier: EMAIL });
  const client = first.cookies.find((cookie) => cookie.startsWith('__client=')) ?? '';
  expect(client).toContain('HttpOnly');
  const path = `/v1/client/sign_ins/${first.id}`;
  await send(`${path}/prepare_first_factor`, { strategy: 'email_code' }, client.split(';')[0]);
  expect(provider.store.mails.all()).not.toMatchObject([{ code: '424242' }]);
  const secret = { strategy: 'password', password: PASSWORD };
  const { cookies } = await send(`${path}/attempt_first_factor`, secret, client.split(';')[0]);
  expect(cookies.filter((cookie) => /^__client_uat(_[\w-]{8})?=[1-9]/.test(cookie))).toHaveLength(2);
});

test('A native app signs in, is still signed in after its restart, and deletes the user', async () => {
  const { provider, user } = await startWithUser();
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
  const signIn = await first.client.signIn.create({ identifier: EMAIL, password: PASSWORD });
  await first.setActive({ session: signIn.createdSessionId });
  expect(await verifyToken(await first.session.getToken(), { jwtKey: provider.publicKeyPem })).toMatchObject({
    sub: user.id,
    sid: signIn.createdSessionId,
  });
  // The SDK for Flutter verifies the signature of the token that identifies the app.
  const [header, claims, signature = ''] = saved.split('.');
  const signed = Buffer.from(`${header}.${claims}`);
  expect(verify('RSA-SHA256', signed, provider.publicKeyPem, Buffer.from(signature, 'base64url'))).toBe(true);

  const restarted = await startApp();
  expect(restarted.user.id).toBe(user.id);
  await restarted.user.delete();
  expect(provider.store.users.all()).toEqual([]);
});

test('After a restart with the same data file, browsers stay signed in', async () => {
  const dataFile = join(folder, 'provider.json');
  const { provider: before, enter } = await startWithUser({ dataFile });
  const { token, sessionId } = await enter();
  await before.stop();

  const after = await startForTest({ dataFile });
  const kept = await developmentBrowser(after, token);
  expect((await kept.call('POST', `/v1/client/sessions/${sessionId}/touch`)).status).toBe(200);
});

test('To prevent DNS rebinding, the emulator rejects a Host header that does not name this machine', async () => {
  const { url } = await startForTest();
  const { port } = new URL(url);
  const foreign = `evil.example evil.example:${port} localhost.evil.example 127.0.0.1.evil.example 192.168.0.1`;
  for (const path of ['/v1/environment', '/v1/dev_browser', '/v1/users']) {
    for (const host of foreign.split(' ')) {
      const { status, body } = await sendRequest('GET', url + path, { host });
      expect([status, body.errors[0].code], host).toEqual([403, 'host_refused']);
    }
    for (const host of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`])
      expect((await sendRequest('GET', url + path, { host })).status, host).not.toBe(403);
  }
});

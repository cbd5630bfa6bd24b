import { expect, test } from 'vitest';
import { z } from 'zod';
import type { EmulatorOptions } from '../src/emulator';
import type { SentResponse } from '../src/observe';
import { EVENTS } from '../src/testing/specification/backend';
import { differenceFromSpecification, operationOf, RESPONSES } from '../src/testing/specification/operations';
import { developmentBrowser } from './helpers/development-browser';
import { SECRET_KEY, startProvider } from './helpers/emulator';
import { bearer } from './helpers/requests';
import { stopAfterTest } from './helpers/stop';

const EMAIL = 'ada+clerk_test@example.com';
const NEW_EMAIL = 'new+clerk_test@example.com';
const PASSWORD = 'correct horse';
/** The fixed code of every email to an address that contains `+clerk_test`. */
const CODE = '424242';

/**
 * Starts an emulator with one user. Returns `browser` for requests to the Frontend API, `backend` for requests to the Backend
 * API, and functions that prepare a call.
 */
async function start(options: Partial<EmulatorOptions> = {}) {
  const responses: SentResponse[] = [];
  const onResponse = (response: SentResponse) => responses.push(response);
  const provider = stopAfterTest(await startProvider({ onResponse, ...options }));
  const user = provider.createUser({ email: EMAIL, password: PASSWORD });
  const { call, send, signIn, signUp } = await developmentBrowser(provider);
  const backend = (method: string, path: string, body?: unknown) =>
    fetch(`${provider.url}${path}`, {
      method,
      headers: { ...bearer(SECRET_KEY), 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return {
    provider,
    responses,
    user: `/v1/users/${user.id}`,
    userId: user.id,
    session: `/v1/sessions/${provider.createSession(user.id).id}`,
    browser: send,
    backend,
    /** Invites an email address. Returns the id of the invitation and the path of the invitation link. */
    async invite() {
      const fields = { email_address: NEW_EMAIL, redirect_url: 'http://localhost:3000/sign-up' };
      const response = await backend('POST', '/v1/invitations', fields);
      const { id, url } = z.object({ id: z.string(), url: z.url() }).parse(await response.json());
      return { id, link: url.slice(provider.url.length) };
    },
    /** Signs the browser in and returns the path of the new session. */
    async signIn() {
      const { response } = await signIn(EMAIL, { password: PASSWORD });
      return `/v1/client/sessions/${response?.created_session_id}`;
    },
    /**
     * Signs the browser in and starts a reverification: the user must prove a credential again. Returns the path
     * of the reverification.
     */
    async startReverification() {
      const { response } = await signIn(EMAIL, { password: PASSWORD });
      const path = `/v1/client/sessions/${response?.created_session_id}/verify`;
      await call('POST', path, { level: 'first_factor' });
      return path;
    },
    /** Starts a sign-in and requests an emailed code for the sign-in. Returns the path of the sign-in. */
    async startSignIn(strategy = 'email_code') {
      const path = `/v1/client/sign_ins/${(await signIn(EMAIL)).response?.id}`;
      await call('POST', `${path}/prepare_first_factor`, { strategy });
      return path;
    },
    /**
     * Starts a sign-in with the password and requests an emailed code as the second factor. The emulator must have the option
     * `clientTrust`. Returns the path of the sign-in.
     */
    async enterPassword() {
      const { response } = await signIn(EMAIL, { password: PASSWORD });
      const path = `/v1/client/sign_ins/${response?.id}`;
      await call('POST', `${path}/prepare_second_factor`, { strategy: 'email_code' });
      return path;
    },
    /** Starts a sign-up and requests an emailed code for the sign-up. Returns the path of the sign-up. */
    async startSignUp() {
      const path = `/v1/client/sign_ups/${(await signUp(NEW_EMAIL, PASSWORD)).response?.id}`;
      await call('POST', `${path}/prepare_verification`, { strategy: 'email_code' });
      return path;
    },
  };
}

async function idOf(response: Promise<Response>) {
  return z.object({ id: z.string() }).parse(await (await response).json());
}

type World = Awaited<ReturnType<typeof start>>;
type Call = (world: World) => Promise<Response>;

const signedIn =
  (method: string, path: string, fields?: Record<string, string>): Call =>
  async ({ signIn, browser }) => {
    await signIn();
    return browser(method, path, fields);
  };
const ofSession =
  (method: string, action = ''): Call =>
  async ({ signIn, browser }) =>
    browser(method, `${await signIn()}${action}`);

/** For each operation, a call that succeeds. */
const CALLS: Readonly<Record<string, Call>> = {
  'GET /.well-known/jwks.json': ({ browser }) => browser('GET', '/.well-known/jwks.json'),
  'GET /v1/environment': ({ browser }) => browser('GET', '/v1/environment'),
  'PATCH /v1/environment': ({ browser }) => browser('PATCH', '/v1/environment'),
  'POST /v1/dev_browser': ({ browser }) => browser('POST', '/v1/dev_browser'),
  'GET /v1/client': signedIn('GET', '/v1/client'),
  'PUT /v1/client': ({ browser }) => browser('PUT', '/v1/client'),
  'POST /v1/client': ({ browser }) => browser('POST', '/v1/client'),
  'DELETE /v1/client': signedIn('DELETE', '/v1/client'),
  'DELETE /v1/client/sessions': signedIn('DELETE', '/v1/client/sessions'),
  'GET /v1/client/handshake': ({ browser }) =>
    browser('GET', '/v1/client/handshake?redirect_url=http%3A%2F%2Flocalhost%3A3000%2F'),
  'GET /v1/client/sessions/:id': ofSession('GET'),
  'POST /v1/client/sessions/:id/touch': ofSession('POST', '/touch'),
  'POST /v1/client/sessions/:id/end': ofSession('POST', '/end'),
  'POST /v1/client/sessions/:id/remove': ofSession('POST', '/remove'),
  'POST /v1/client/sessions/:id/tokens': ofSession('POST', '/tokens'),
  'POST /v1/client/sessions/:id/verify': async ({ signIn, browser }) =>
    browser('POST', `${await signIn()}/verify`, { level: 'first_factor' }),
  'POST /v1/client/sessions/:id/verify/prepare_first_factor': async ({ startReverification, browser }) =>
    browser('POST', `${await startReverification()}/prepare_first_factor`, { strategy: 'email_code' }),
  'POST /v1/client/sessions/:id/verify/attempt_first_factor': async ({ startReverification, browser }) =>
    browser('POST', `${await startReverification()}/attempt_first_factor`, {
      strategy: 'password',
      password: PASSWORD,
    }),
  'POST /v1/client/sign_ins': ({ browser }) =>
    browser('POST', '/v1/client/sign_ins', { identifier: EMAIL, password: PASSWORD }),
  'PATCH /v1/client/sign_ins/:id/protect_check': async ({ browser, startSignIn }) =>
    browser('PATCH', `${await startSignIn()}/protect_check`, { proof_token: 'proof' }),
  'PATCH /v1/client/sign_ups/:id/protect_check': async ({ browser, startSignUp }) =>
    browser('PATCH', `${await startSignUp()}/protect_check`, { proof_token: 'proof' }),
  'GET /v1/client/sign_ins/:id': async ({ browser, startSignIn }) => browser('GET', await startSignIn()),
  'POST /v1/client/sign_ins/:id/prepare_first_factor': async ({ browser, startSignIn }) =>
    browser('POST', `${await startSignIn()}/prepare_first_factor`, { strategy: 'email_code' }),
  'POST /v1/client/sign_ins/:id/attempt_first_factor': async ({ browser, startSignIn }) =>
    browser('POST', `${await startSignIn()}/attempt_first_factor`, { strategy: 'email_code', code: CODE }),
  'POST /v1/client/sign_ins/:id/prepare_second_factor': async ({ browser, enterPassword }) =>
    browser('POST', `${await enterPassword()}/prepare_second_factor`, { strategy: 'email_code' }),
  'POST /v1/client/sign_ins/:id/attempt_second_factor': async ({ browser, enterPassword }) =>
    browser('POST', `${await enterPassword()}/attempt_second_factor`, { strategy: 'email_code', code: CODE }),
  'POST /v1/client/sign_ins/:id/reset_password': async ({ browser, startSignIn }) => {
    const strategy = 'reset_password_email_code';
    const signIn = await startSignIn(strategy);
    await browser('POST', `${signIn}/attempt_first_factor`, { strategy, code: CODE });
    return browser('POST', `${signIn}/reset_password`, { password: 'another horse' });
  },
  'POST /v1/client/sign_ups': ({ browser }) =>
    browser('POST', '/v1/client/sign_ups', { email_address: NEW_EMAIL, password: PASSWORD }),
  'GET /v1/client/sign_ups/:id': async ({ browser, startSignUp }) => browser('GET', await startSignUp()),
  'PATCH /v1/client/sign_ups/:id': async ({ browser, startSignUp }) =>
    browser('PATCH', await startSignUp(), { first_name: 'Ada' }),
  'POST /v1/client/sign_ups/:id/prepare_verification': async ({ browser, startSignUp }) =>
    browser('POST', `${await startSignUp()}/prepare_verification`, { strategy: 'email_code' }),
  'POST /v1/client/sign_ups/:id/attempt_verification': async ({ browser, startSignUp }) =>
    browser('POST', `${await startSignUp()}/attempt_verification`, { strategy: 'email_code', code: CODE }),
  'GET /v1/tickets/accept': async ({ browser, invite }) => browser('GET', (await invite()).link),
  'GET /v1/me': signedIn('GET', '/v1/me'),
  'PATCH /v1/me': signedIn('PATCH', '/v1/me', { first_name: 'Ada' }),
  'DELETE /v1/me': signedIn('DELETE', '/v1/me'),
  'POST /v1/me/change_password': signedIn('POST', '/v1/me/change_password', {
    current_password: PASSWORD,
    new_password: 'another horse',
  }),
  'GET /v1/me/email_addresses': signedIn('GET', '/v1/me/email_addresses'),
  'GET /v1/me/sessions/active': signedIn('GET', '/v1/me/sessions/active'),
  'POST /v1/me/sessions/:id/revoke': async ({ signIn, browser }) => {
    const id = (await signIn()).split('/').at(-1);
    return browser('POST', `/v1/me/sessions/${id}/revoke`);
  },
  'GET /v1/jwks': ({ backend }) => backend('GET', '/v1/jwks'),
  'GET /v1/clients/handshake_payload': async ({ browser, backend }) => {
    const page = encodeURIComponent('http://localhost:3000/');
    const { headers } = await browser('GET', `/v1/client/handshake?format=nonce&redirect_url=${page}`);
    const nonce = new URL(headers.get('location') ?? '').searchParams.get('__clerk_handshake_nonce');
    return backend('GET', `/v1/clients/handshake_payload?nonce=${nonce}`);
  },
  'GET /v1/users': ({ backend }) => backend('GET', '/v1/users'),
  'POST /v1/users': ({ backend }) =>
    backend('POST', '/v1/users', { email_address: [NEW_EMAIL], password: PASSWORD }),
  'GET /v1/users/count': ({ backend }) => backend('GET', '/v1/users/count'),
  'GET /v1/users/:id': ({ backend, user }) => backend('GET', user),
  'PATCH /v1/users/:id': ({ backend, user }) => backend('PATCH', user, { external_id: 'crm-1' }),
  'DELETE /v1/users/:id': ({ backend, user }) => backend('DELETE', user),
  'PATCH /v1/users/:id/metadata': ({ backend, user }) =>
    backend('PATCH', `${user}/metadata`, { public_metadata: { plan: 'pro' } }),
  'PUT /v1/users/:id/metadata': ({ backend, user }) =>
    backend('PUT', `${user}/metadata`, { public_metadata: { plan: 'pro' } }),
  'POST /v1/users/:id/verify_password': ({ backend, user }) =>
    backend('POST', `${user}/verify_password`, { password: PASSWORD }),
  'GET /v1/users/:id/deliveries': ({ backend, user }) => backend('GET', `${user}/deliveries`),
  'GET /v1/sessions': ({ backend }) => backend('GET', '/v1/sessions?paginated=true'),
  'POST /v1/sessions': ({ backend, userId }) => backend('POST', '/v1/sessions', { user_id: userId }),
  'GET /v1/sessions/:id': ({ backend, session }) => backend('GET', session),
  'POST /v1/sessions/:id/revoke': ({ backend, session }) => backend('POST', `${session}/revoke`),
  'POST /v1/sessions/:id/tokens': ({ backend, session }) => backend('POST', `${session}/tokens`),
  'POST /v1/sign_in_tokens': ({ backend, userId }) =>
    backend('POST', '/v1/sign_in_tokens', { user_id: userId }),
  'POST /v1/sign_in_tokens/:id/revoke': async ({ backend, userId }) => {
    const { id } = await idOf(backend('POST', '/v1/sign_in_tokens', { user_id: userId }));
    return backend('POST', `/v1/sign_in_tokens/${id}/revoke`);
  },
  'POST /v1/testing_tokens': ({ backend }) => backend('POST', '/v1/testing_tokens'),
  'GET /v1/invitations': async ({ backend, invite }) => {
    await invite();
    return backend('GET', '/v1/invitations?paginated=true');
  },
  'POST /v1/invitations': ({ backend }) =>
    backend('POST', '/v1/invitations', { email_address: NEW_EMAIL, expires_in_days: 1 }),
  'POST /v1/invitations/:id/revoke': async ({ backend, invite }) =>
    backend('POST', `/v1/invitations/${(await invite()).id}/revoke`),
};

/** Options of the emulator that some operations need. */
const OPTIONS: Readonly<Record<string, Partial<EmulatorOptions>>> = {
  'PATCH /v1/client/sign_ins/:id/protect_check': { protectCheckUrl: 'https://protect.example/check.js' },
  'PATCH /v1/client/sign_ups/:id/protect_check': { protectCheckUrl: 'https://protect.example/check.js' },
  'POST /v1/client/sign_ins/:id/prepare_second_factor': { clientTrust: true },
  'POST /v1/client/sign_ins/:id/attempt_second_factor': { clientTrust: true },
};

test.each(Object.entries(CALLS))(
  'A valid call of %s succeeds, and the response conforms to the specification of Clerk',
  async (operation, call) => {
    const world = await start(OPTIONS[operation]);
    const { status } = await call(world);
    expect(status).toBeLessThan(400);
    const last = world.responses.at(-1);
    expect(last && operationOf(last)).toBe(operation);
    expect(world.responses.flatMap((response) => differenceFromSpecification(response) ?? [])).toEqual([]);
  },
);

test('Every operation of the emulator has a schema and is called by a test', async () => {
  const { operations } = (await start()).provider;
  expect(Object.keys(CALLS).sort()).toEqual(operations.toSorted());
  expect(Object.keys(RESPONSES)).toEqual(expect.arrayContaining([...operations]));
});

test('differenceFromSpecification() reports an unknown field, a missing field and a field of the wrong type', () => {
  const body = { object: 'total_count', total_count: 1 };
  const count = (changes: object) =>
    differenceFromSpecification({
      method: 'GET',
      path: '/v1/users/count',
      status: 200,
      body: JSON.stringify({ ...body, ...changes }),
    });
  expect(count({})).toBeUndefined();
  expect(count({ more: 1 })).toContain('"more"');
  expect(count({ total_count: undefined })).toContain('total_count');
  expect(count({ total_count: '1' })).toContain('total_count');
});

test('The webhook body of each event type conforms to the specification of Clerk', async () => {
  const { provider, browser, signIn, backend, session, user } = await start();
  await browser('POST', `${await signIn()}/end`);
  await browser('POST', `${await signIn()}/remove`);
  await backend('POST', `${session}/revoke`);
  await backend('PATCH', user, { first_name: 'Ada' });
  await backend('DELETE', user);
  const sent = provider.webhooks.list();
  expect([...new Set(sent.map(({ type }) => type))].sort()).toEqual(Object.keys(EVENTS).sort());
  for (const { type, body } of sent) {
    const { error } = (EVENTS[type] ?? z.never()).safeParse(JSON.parse(body));
    expect(error && `${type}: ${z.prettifyError(error)}`).toBeUndefined();
  }
});

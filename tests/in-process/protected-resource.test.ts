import { randomUUID } from 'node:crypto';
import { foreignKeys, type Signing } from 'clerk-emulator/testing';
import { NextRequest } from 'next/server';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { setEnvironment } from '#lib/base/env';
import { log } from '#lib/base/log';
import { guardTenant } from '#lib/guard-tenant';
import { json } from '#lib/http/route';
import { signVerdict, VERDICT } from '#lib/http/signed-verdict';
import { forget } from '#lib/operator/forget';
import { protectedResource } from '#lib/protected-resource';
import { POST as register } from '../../app/auth/v1/register/route';
import { GET as me } from '../../app/users/v1/me/route';
import { runMiddleware } from '../harness/application';
import { startStubServer } from '../harness/dependencies/stub-server';
import { startProvider } from '../harness/identity-provider';
import { startInProcess } from '../harness/in-process';
import { bearer, cookie, now, tokenFor } from '../harness/requests';
import { stopAfterAll } from '../vitest/stop-after-all';

/** Another provider, whose cookie contains the user. */
vi.mock('#providers', () => ({
  providers: [
    {
      name: 'other',
      authenticate({ headers }: Request) {
        const user = /other=(\w+)/.exec(headers.get('cookie') ?? '')?.[1];
        return user === undefined ? undefined : { user };
      },
    },
  ],
}));

const { database, kv } = await startInProcess();
const idp = stopAfterAll(await startProvider());
/** Records requests to the provider's Backend API. The service sends none, because IDP_JWT_KEY is set. */
const backendApi = stopAfterAll(await startStubServer());
const ORIGIN = 'https://api.example.com';
const AUDIENCE = `${ORIGIN}/mcp/v1`;
const METADATA = `${ORIGIN}/.well-known/oauth-protected-resource/mcp/v1`;

const lines: unknown[][] = [];
for (const level of ['info', 'warn', 'error'] as const)
  vi.spyOn(log, level).mockImplementation((...line: unknown[]) => void lines.push(line));

const configure = (changes: Record<string, string> = {}) => setEnvironment({ ...process.env, ...changes });
beforeAll(() => {
  vi.stubEnv('IDP_JWT_KEY', idp.publicKeyPem);
  vi.stubEnv('PUBLIC_ORIGIN', ORIGIN);
  vi.stubEnv('CLERK_API_URL', backendApi.url);
});
beforeEach(() => {
  configure();
  lines.length = 0;
});
afterEach(() => {
  expect(backendApi.calls).toEqual([]);
});

const handler = vi.fn((_request: NextRequest, context: object) => json(context));
const options = { scopes: ['read'], optionalScopes: ['offline_access'] };
const resource = protectedResource('/mcp/v1', options);
const guarded = resource.guard(handler);
const withSessions = protectedResource('/mcp/v1', { ...options, sessions: true }).guard(handler);

type Route = typeof guarded;

/** Sends a request through the middleware to a route. */
async function fetchFrom(route: Route, headers: Record<string, string>, method = 'GET'): Promise<Response> {
  const url = 'http://localhost:3000/mcp/v1';
  const passed = await runMiddleware(url, { headers: { host: 'localhost:3000', ...headers }, method });
  const request = new NextRequest(url, { headers: passed.headers, method });
  return route(request, { params: Promise.resolve({}) });
}

async function send(headers: Record<string, string>, route?: Route, method?: string) {
  const response = await fetchFrom(route ?? guarded, headers, method);
  const text = await response.text();
  return {
    status: response.status,
    body: text && JSON.parse(text),
    challenge: response.headers.get('www-authenticate'),
  };
}

/** Returns an access token of a client. A claim that is undefined is absent. */
const accessToken = (user: string, claims: object = {}, { header = {}, ...signing }: Signing = {}) =>
  tokenFor(
    idp,
    user,
    {
      sid: undefined,
      sts: undefined,
      v: undefined,
      jti: randomUUID(),
      client_id: 'client_1',
      scope: 'read write',
      aud: AUDIENCE,
      ...claims,
    },
    { ...signing, header: { typ: 'at+jwt', ...header } },
  );
const reasons = () => lines.flatMap(([fields]) => Object(fields).reason ?? []);
const rejected = (error: string) => ({
  status: 401,
  body: { message: 'Unauthorized' },
  challenge: `Bearer ${error}scope="read offline_access", resource_metadata="${METADATA}"`,
});
const invalid = rejected('error="invalid_token", ');

test('The first access token of a user links the user, and leads to the same internal id as a session', async () => {
  const { status, body } = await send(bearer(accessToken('user_new')));
  const [userId] = await database.idsOf('user_new');
  const user = { isAuthenticated: true, userId, identityProviderUserId: 'user_new' };
  expect([status, body]).toEqual([200, { ...user, clientId: 'client_1', scopes: ['read', 'write'] }]);
  expect(Object.isFrozen(handler.mock.calls[0]?.[1])).toBe(true);
  expect((await send(bearer(tokenFor(idp, 'user_new')), withSessions)).body).toEqual(user);
  expect((await send(cookie(tokenFor(idp, 'user_new')), withSessions)).body).toEqual(user);
});

test('A resource accepts a session token only with `sessions`, because the token was not issued for it', async () => {
  const session = tokenFor(idp, 'user_session');
  expect(await send(bearer(session))).toEqual(invalid);
  expect(await send(cookie(session))).toEqual(rejected(''));
  expect([reasons(), await database.idsOf('user_session')]).toEqual([['session', 'session'], []]);
});

test.each<[string, object, Signing?]>([
  ['of the long type', {}, { header: { typ: 'application/at+jwt' } }],
  ['for several audiences', { aud: ['https://other.example/', AUDIENCE] }],
  ['with one scope', { scope: 'read' }],
])('An access token %s is accepted', async (_what, claims, signing) => {
  const token = accessToken('user_1', claims, signing);
  for (const headers of [bearer(token), { authorization: token }])
    expect(await send(headers)).toMatchObject({ status: 200, body: { clientId: 'client_1' } });
});

test.each<[string, object, Signing?, reason?: string]>([
  ['no audience', { aud: undefined }, {}, 'no-audience'],
  ['another audience', { aud: 'https://other.example/' }, {}, 'audience'],
  ...['', [], `${AUDIENCE}/`, `${ORIGIN}/`, `${ORIGIN}/MCP/v1`].map((aud): [string, object] => [
    `the audience ${JSON.stringify(aud)}`,
    { aud },
  ]),
  ['a list of other audiences', { aud: ['https://other.example/', `${AUDIENCE}/`] }],
  ...['mch_1', 'client_1', 'user', 'user_\0', `user_${'x'.repeat(255)}`, '', 7, undefined].map(
    (sub): [string, object] => [`the sub ${JSON.stringify(sub)?.slice(0, 15)}`, { sub }],
  ),
  ...['', 7, undefined, ['client_1']].map((id): [string, object] => [
    `the client id ${JSON.stringify(id)}`,
    { client_id: id },
  ]),
  ...[['read'], 7, {}].map((scope): [string, object] => [`the scope ${JSON.stringify(scope)}`, { scope }]),
  ['the issuer of another instance', { iss: 'https://other.clerk.accounts.dev' }],
  ...['iss', 'iat', 'jti'].map((name): [string, object] => [`no ${name}`, { [name]: undefined }]),
  ['an unknown critical extension', {}, { header: { crit: ['b64'] } }],
  ['an expired validity', { exp: now() - 10 }],
  ['no expiry', { exp: undefined }],
  ['a validity that has not begun', { nbf: now() + 60 }],
  ['the signature of another key', {}, { privateKeyPem: foreignKeys().privateKey }],
  ['the algorithm none', {}, { header: { alg: 'none' } }],
  ['the public key as an HMAC secret', {}, { header: { alg: 'HS256' } }],
  ['the type of an id token', {}, { header: { typ: 'JWT' } }],
  ['the category of a machine token', {}, { header: { cat: 'cl_B7d4PD333AAA' } }],
])('An access token with %s gets a 401', async (_what, claims, signing, reason = expect.any(String)) => {
  expect(await send(bearer(accessToken('user_hostile', claims, signing)))).toEqual(invalid);
  expect(reasons()).toEqual([reason]);
  expect(await database.idsOf('user_hostile')).toEqual([]);
});

test.each<[string, () => Record<string, string>, object]>([
  ['an opaque access token', () => bearer('oat_0123456789abcdef'), invalid],
  ['an API key', () => bearer('ak_0123456789abcdef'), invalid],
  ['a machine token', () => bearer('mt_0123456789abcdef'), invalid],
  ['an access token in a cookie', () => cookie(accessToken('user_cookie')), rejected('')],
  ['another scheme', () => ({ authorization: 'Basic YTpi' }), rejected('')],
  ['no credential', () => ({}), rejected('')],
])('A request with %s gets a 401', async (_what, headers, response) => {
  expect(await send(headers())).toEqual(response);
});

test.each(['write', 'reads', 'Read', 'read:all', 'a\tread', '', undefined])(
  'An access token with the scope %j lacks the scope "read" and gets a 403, before a lookup of the user',
  async (scope) => {
    kv.takeCommands();
    expect(await send(bearer(accessToken('user_scope', { scope })))).toEqual({
      status: 403,
      body: { message: 'Forbidden' },
      challenge: `Bearer error="insufficient_scope", scope="read offline_access", resource_metadata="${METADATA}"`,
    });
    expect([reasons(), kv.takeCommands()]).toEqual([['insufficient-scope'], []]);
  },
);

test('An access token needs all scopes of the route', async () => {
  const route = protectedResource('/mcp/v1', { scopes: ['read', 'write'] }).guard(handler);
  for (const [scope, status] of [
    ['read', 403],
    ['write', 403],
    ['write x read', 200],
  ] as const)
    expect(await send(bearer(accessToken('user_1', { scope })), route), scope).toMatchObject({ status });
});

test('Every other guarded route rejects an access token, which is verified once', async () => {
  const verify = vi.spyOn(crypto.subtle, 'verify');
  const tokens = [
    accessToken('user_1'),
    'oat_0123456789abcdef',
    'ak_0123456789abcdef',
    'mt_0123456789abcdef',
  ];
  kv.takeCommands();
  for (const token of tokens)
    for (const route of [me, register, guardTenant(handler)])
      expect(await send(bearer(token), route)).toEqual({ ...invalid, challenge: 'Bearer' });
  expect([verify.mock.calls.length, kv.takeCommands()]).toEqual([1, []]);
  verify.mockRestore();
});

test('An access token does not link a forgotten user again, whatever its issue time, and a session does', async () => {
  await forget('user', 'user_forgotten', 30, { by: 'me' }, async () => undefined);
  await database.pool.query(`UPDATE forgotten_users SET forgotten_at = now() - interval '1 hour'`);
  expect(await send(bearer(accessToken('user_forgotten')))).toEqual(invalid);
  expect(lines).toContainEqual([expect.objectContaining({ reason: 'forgotten' }), 'request']);
  expect(await send(bearer(tokenFor(idp, 'user_forgotten')), withSessions)).toMatchObject({ status: 200 });
});

test('The log contains no claim of an access token or a session', async () => {
  const claims = { client_id: 'client_logged', scope: 'read logged' };
  for (const token of [accessToken('user_1', claims), tokenFor(idp, 'user_1', claims)])
    expect(await send(bearer(token), withSessions)).toMatchObject({ status: 200 });
  await send(bearer(accessToken('user_1', { aud: 'https://logged.example/' })));
  expect(lines).toHaveLength(3);
  expect(JSON.stringify(lines)).not.toMatch(/logged|eyJ|api\.example|user_/);
});

test('Without PUBLIC_ORIGIN, every access token gets a 401, the log says why, and there is no metadata', async () => {
  configure({ PUBLIC_ORIGIN: '' });
  const challenge = 'Bearer error="invalid_token", scope="read offline_access"';
  expect(await send(bearer(accessToken('user_1')))).toEqual({ ...invalid, challenge });
  expect(reasons()).toEqual(['no-public-origin']);
  expect(await send({}, resource.metadata.GET)).toMatchObject({ status: 404 });
});

test('Without IDP_JWT_KEY, the SDK gets the keys from the provider', async () => {
  configure({ IDP_JWT_KEY: '', CLERK_API_URL: idp.url });
  expect(await send(bearer(accessToken('user_1')))).toMatchObject({ status: 200 });
});

test.each([
  [true, [503, 503, 401]],
  [undefined, [401, 503, 503]],
])(
  'An unchecked access token (%s) or session gets a 503 only from a route that accepts its kind',
  async (isAccessToken, statuses) => {
    const verdict = signVerdict({ reason: 'jwk-failed-to-load', isUnchecked: true, isAccessToken });
    const request = () => new NextRequest('http://localhost/mcp/v1', { headers: { [VERDICT]: verdict } });
    const context = { params: Promise.resolve({}) };
    const responses = [guarded, withSessions, me].map((each) => each(request(), context));
    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual(statuses);
    expect(log.error).not.toHaveBeenCalled();
  },
);

test('The metadata names the resource, its authorization server and its scopes', async () => {
  expect(await send({}, resource.metadata.GET)).toMatchObject({
    status: 200,
    body: {
      resource: AUDIENCE,
      authorization_servers: [idp.issuer],
      scopes_supported: ['read', 'offline_access'],
      bearer_methods_supported: ['header'],
    },
  });
});

test('A page of another origin can read each response, and its preflight allows a bearer token and every other header', async () => {
  handler.mockClear();
  const origin = { origin: 'https://page.example', 'sec-fetch-site': 'cross-site' };
  for (const [route, headers, status] of [
    [guarded, bearer(accessToken('user_1')), 200],
    [guarded, {}, 401],
    [guarded, bearer(accessToken('user_1', { scope: '' })), 403],
    [resource.metadata.GET, {}, 200],
  ] as const) {
    const response = await fetchFrom(route, { ...origin, ...headers });
    const names = ['access-control-allow-origin', 'access-control-expose-headers'];
    expect([response.status, ...names.map((name) => response.headers.get(name))]).toEqual([status, '*', '*']);
  }
  for (const { OPTIONS } of [resource, resource.metadata]) {
    const { status, headers } = await fetchFrom(OPTIONS, origin, 'OPTIONS');
    const names = ['allow-origin', 'allow-methods', 'allow-headers'];
    const values = names.map((name) => headers.get(`access-control-${name}`));
    expect([status, ...values]).toEqual([204, '*', '*', 'authorization, *']);
  }
  expect(handler).toHaveBeenCalledTimes(1);
});

test.each([
  ['a foreign origin', { 'sec-fetch-site': 'cross-site', origin: 'https://page.example' }],
  ['an authorized party', { 'sec-fetch-site': 'same-site', origin: 'https://authorized.example' }],
  ['a subdomain', { 'sec-fetch-site': 'same-site' }],
])(
  'A session cookie does not count in a request from %s, and a bearer token does',
  async (_what, headers) => {
    configure({ IDP_AUTHORIZED_PARTIES: 'https://authorized.example' });
    const session = tokenFor(idp, 'user_1', { azp: 'https://authorized.example' });
    expect(await send({ ...headers, ...cookie(session) }, withSessions)).toEqual(rejected(''));
    expect(reasons()).toEqual(['foreign-cookie']);
    expect(await send({ ...headers, cookie: 'other=ada' }, withSessions)).toEqual(rejected(''));
    expect(await send({ ...headers, ...bearer(session) }, withSessions)).toMatchObject({ status: 200 });
  },
);

test('A session cookie of another provider counts in a request of the own origin, if the resource accepts sessions', async () => {
  const headers = { 'sec-fetch-site': 'same-origin', cookie: 'other=ada' };
  expect(await send(headers, withSessions)).toMatchObject({
    status: 200,
    body: { identityProviderUserId: 'ada' },
  });
  expect(await send(headers)).toEqual(rejected(''));
});

test('A resource rejects a token for another resource of the same origin with a 401, also if the token lacks a scope', async () => {
  const other = protectedResource('/other/v1', { scopes: [] });
  for (const scope of ['read', '']) {
    const token = bearer(accessToken('user_1', { aud: `${ORIGIN}/other/v1`, scope }));
    expect(await send(token, other.guard(handler))).toMatchObject({ status: 200 });
    expect(await send(token)).toEqual(invalid);
  }
});

test.each(['https://api.example.com', 'https://api.example.com/'])(
  'The audience %s means the same as the other spelling of the origin',
  async (aud) => {
    const origin = protectedResource('/', { scopes: ['read'] });
    expect(await send(bearer(accessToken('user_1', { aud })), origin.guard(handler))).toMatchObject({
      status: 200,
    });
    expect(await send({}, origin.metadata.GET)).toMatchObject({ body: { resource: `${ORIGIN}/` } });
    const challenge = `Bearer scope="read", resource_metadata="${ORIGIN}/.well-known/oauth-protected-resource"`;
    expect(await send({}, origin.guard(handler))).toMatchObject({ challenge });
  },
);

test.each(['', 'mcp', '//mcp', '/mcp/', '/%7Ea', '/A%2FB', '/v1.rsc', '/a/../b', '/a b', '/a?b', '/a#b'])(
  'The path %j is rejected at its declaration',
  (path) => {
    expect(() => protectedResource(path, { scopes: [] })).toThrow(
      'cannot be the path of a protected resource',
    );
  },
);

test('The context has the actor of an access token or a session, and the log says that a user is impersonated', async () => {
  for (const token of [accessToken, tokenFor.bind(undefined, idp)]) {
    const actor = { id: 'user_admin', type: 'agent' };
    const act = { sub: actor.id, type: actor.type };
    const sent = bearer(token('user_1', { act }));
    expect(await send(sent, withSessions)).toMatchObject({ status: 200, body: { actor } });
    expect(lines.at(-1)).toEqual([expect.objectContaining({ impersonated: true }), 'request']);
    expect(await send(bearer(token('user_1', { act: { sub: 7 } })), withSessions)).toEqual(invalid);
  }
});

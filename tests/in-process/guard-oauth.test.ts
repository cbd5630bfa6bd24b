import { randomUUID } from 'node:crypto';
import { foreignKeys, type Signing } from 'clerk-emulator/testing';
import { NextRequest } from 'next/server';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { parseEnvironment, setEnvironment } from '#lib/base/env';
import { log } from '#lib/base/log';
import { guardOAuth, metadataUrl } from '#lib/guard-oauth';
import { guardTenant } from '#lib/guard-tenant';
import { json } from '#lib/http/route';
import { forget } from '#lib/links/forget';
import { GET as metadata } from '../../app/.well-known/oauth-protected-resource/[[...path]]/route';
import { POST as register } from '../../app/auth/v1/register/route';
import { GET as me } from '../../app/users/v1/me/route';
import { runMiddleware } from '../harness/application';
import { startStubServer } from '../harness/dependencies/stub-server';
import { startProvider } from '../harness/identity-provider';
import { startInProcess } from '../harness/in-process';
import { inParallel } from '../harness/parallel';
import { bearer, cookie, now, tokenFor } from '../harness/requests';
import { stopAfterAll } from '../vitest/stop-after-all';

const { database, kv } = await startInProcess();
const idp = stopAfterAll(await startProvider());
/** Records requests to the provider's Backend API. The service sends none, because IDP_JWT_KEY is set. */
const backendApi = stopAfterAll(await startStubServer());
const AUDIENCE = 'https://api.example.com/mcp';
const METADATA = 'https://api.example.com/.well-known/oauth-protected-resource/mcp';

const lines: unknown[][] = [];
for (const level of ['info', 'warn', 'error'] as const)
  vi.spyOn(log, level).mockImplementation((...line: unknown[]) => void lines.push(line));

const configure = (changes: Record<string, string> = {}) =>
  setEnvironment(parseEnvironment({ ...process.env, ...changes }));
beforeAll(() => {
  vi.stubEnv('IDP_JWT_KEY', idp.publicKeyPem);
  vi.stubEnv('IDP_OAUTH_AUDIENCE', AUDIENCE);
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
const guarded = guardOAuth(handler, { scopes: ['read'] });

/** Sends a request through the middleware to a route. */
async function send(headers: Record<string, string>, route: typeof guarded = guarded, method = 'GET') {
  const url = 'http://localhost:3000/mcp/v1';
  const passed = await runMiddleware(url, { headers: { host: 'localhost:3000', ...headers }, method });
  const request = new NextRequest(url, { headers: passed.headers, method });
  const response = await route(request, { params: Promise.resolve({}) });
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
      ...{ sid: undefined, sts: undefined, v: undefined, jti: randomUUID() },
      ...{ client_id: 'client_1', scope: 'read write', aud: AUDIENCE, ...claims },
    },
    { ...signing, header: { typ: 'at+jwt', ...header } },
  );
const rejected = (error: string) => ({
  status: 401,
  body: { message: 'Unauthorized' },
  challenge: `Bearer ${error}scope="read", resource_metadata="${METADATA}"`,
});
const invalid = rejected('error="invalid_token", ');

test('The first access token of a user links the user, and leads to the same internal id as a session', async () => {
  const { status, body } = await send(bearer(accessToken('user_new')));
  const [userId] = await database.idsOf('user_new');
  const user = { isAuthenticated: true, userId, identityProviderUserId: 'user_new' };
  expect([status, body]).toEqual([200, { ...user, clientId: 'client_1', scopes: ['read', 'write'] }]);
  expect(Object.isFrozen(handler.mock.calls[0]?.[1])).toBe(true);
  expect((await send(bearer(tokenFor(idp, 'user_new')))).body).toEqual(user);
  expect((await send(cookie(tokenFor(idp, 'user_new')))).body).toEqual(user);
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

test.each<[string, object, Signing?]>([
  ...[
    undefined,
    '',
    [],
    null,
    7,
    {},
    'https://other.example/',
    `${AUDIENCE}/`,
    'https://api.example.com/MCP',
  ].map((aud): [string, object] => [`the audience ${JSON.stringify(aud)}`, { aud }]),
  ['a list of other audiences', { aud: ['https://other.example/', `${AUDIENCE}/`] }],
  ...['mch_1', 'client_1', 'user', 'user_\0', `user_${'x'.repeat(255)}`, '', 7, undefined].map(
    (sub): [string, object] => [`the sub ${JSON.stringify(sub)?.slice(0, 15)}`, { sub }],
  ),
  ...['', 7, undefined, ['client_1']].map((id): [string, object] => [
    `the client id ${JSON.stringify(id)}`,
    { client_id: id },
  ]),
  ...[['read'], 7, {}].map((scope): [string, object] => [`the scope ${JSON.stringify(scope)}`, { scope }]),
  ['an expired validity', { exp: now() - 10 }],
  ['no expiry', { exp: undefined }],
  ['a validity that has not begun', { nbf: now() + 60 }],
  ['the signature of another key', {}, { privateKeyPem: foreignKeys().privateKey }],
  ['the algorithm none', {}, { header: { alg: 'none' } }],
  ['the public key as an HMAC secret', {}, { header: { alg: 'HS256' } }],
  ['the type of an id token', {}, { header: { typ: 'JWT' } }],
  ['the category of a machine token', {}, { header: { cat: 'cl_B7d4PD333AAA' } }],
])('An access token with %s gets a 401', async (_what, claims, signing) => {
  expect(await send(bearer(accessToken('user_hostile', claims, signing)))).toEqual(invalid);
  expect(await database.idsOf('user_hostile')).toEqual([]);
});

test.each<[string, () => Record<string, string>, object]>([
  ['an opaque access token', () => bearer('oat_0123456789abcdef'), invalid],
  ['an API key', () => bearer('ak_0123456789abcdef'), invalid],
  ['a machine token', () => bearer('mt_0123456789abcdef'), invalid],
  ['an access token in a cookie', () => cookie(accessToken('user_cookie')), invalid],
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
      challenge: `Bearer error="insufficient_scope", scope="read", resource_metadata="${METADATA}"`,
    });
    expect(kv.takeCommands()).toEqual([]);
  },
);

test('An access token needs all scopes of the route', async () => {
  const route = guardOAuth(handler, { scopes: ['read', 'write'] });
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
      expect(await send(bearer(token), route)).toEqual({ ...invalid, challenge: null });
  expect([verify.mock.calls.length, kv.takeCommands()]).toEqual([1, []]);
  verify.mockRestore();
});

test('An access token does not link a forgotten user again, whatever its issue time, and a session does', async () => {
  await forget('user', 'user_forgotten', 30, async () => undefined);
  await database.pool.query(`UPDATE forgotten_users SET forgotten_at = now() - interval '1 hour'`);
  expect(await send(bearer(accessToken('user_forgotten')))).toEqual(invalid);
  expect(lines).toContainEqual([expect.objectContaining({ reason: 'forgotten' }), 'request']);
  expect(await send(bearer(tokenFor(idp, 'user_forgotten')))).toMatchObject({ status: 200 });
});

test('Each of 400 requests of 50 users with access tokens and sessions gets its own id, also of cached tokens, and the log contains no claim of a token', async () => {
  const claims = { client_id: 'client_logged', scope: 'read logged' };
  const credentials = Array.from({ length: 50 }, (_, index) => `user_${index}`).flatMap((user) =>
    [accessToken(user, claims), tokenFor(idp, user)].map((token) => ({ user, token })),
  );
  const ids: [user: string, id: unknown][] = [];
  await inParallel(20, Array.from({ length: 4 }, () => credentials).flat(), async ({ user, token }) => {
    ids.push([user, (await send(bearer(token))).body.userId]);
  });
  const { rows } = await database.pool.query('SELECT identity_provider_user_id AS user, id FROM users');
  const idOf = new Map(rows.map(({ user, id }) => [user, id]));
  expect(ids).toHaveLength(400);
  expect(ids).toEqual(ids.map(([user]) => [user, idOf.get(user)]));
  await send(bearer(accessToken('user_1', { aud: 'https://logged.example/' })));
  expect(JSON.stringify(lines)).not.toMatch(/logged|eyJ|api\.example|user_/);
});

test('Without IDP_OAUTH_AUDIENCE, every access token gets a 401, a warning says why, and there is no metadata', async () => {
  configure({ IDP_OAUTH_AUDIENCE: '' });
  const challenge = 'Bearer error="invalid_token", scope="read"';
  for (const aud of [AUDIENCE, undefined])
    expect(await send(bearer(accessToken('user_1', { aud })))).toEqual({ ...invalid, challenge });
  const message = 'IDP_OAUTH_AUDIENCE is not set: access tokens are rejected';
  expect(lines.filter((line) => line.includes(message))).toHaveLength(1);
  const request = new NextRequest(METADATA);
  expect((await metadata(request, { params: Promise.resolve({}) })).status).toBe(404);
});

test('Without IDP_JWT_KEY, the SDK gets the keys from the provider', async () => {
  configure({ IDP_JWT_KEY: '', CLERK_API_URL: idp.url });
  expect(await send(bearer(accessToken('user_1')))).toMatchObject({ status: 200 });
});

test('An OPTIONS request gets a 204, and the handler does not run', async () => {
  handler.mockClear();
  expect(await send({}, guarded, 'OPTIONS')).toMatchObject({ status: 204, challenge: null });
  expect(handler).not.toHaveBeenCalled();
});

test.each([
  [METADATA, 200],
  ['https://api.example.com/.well-known/oauth-protected-resource', 200],
  ['https://api.example.com/.well-known/oauth-protected-resource/other', 404],
])('The metadata of the protected resource at %s has the status %i', async (url, status) => {
  const response = await metadata(new NextRequest(url), { params: Promise.resolve({}) });
  expect(response.status).toBe(status);
  if (status !== 200) return;
  expect(response.headers.get('access-control-allow-origin')).toBe('*');
  expect(await response.json()).toEqual({
    resource: AUDIENCE,
    authorization_servers: [idp.issuer],
    bearer_methods_supported: ['header'],
  });
});

test('The address of the metadata has no slash at the end, because a route has none', () => {
  for (const path of ['', 'mcp/'])
    expect(metadataUrl(`https://api.example.com/${path}`).pathname).toMatch(/resource(?:\/mcp)?$/);
});

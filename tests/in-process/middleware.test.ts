import { NextRequest } from 'next/server';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { setEnvironment } from '#lib/base/env';
import { log } from '#lib/base/log';
import { runMiddleware, startMiddleware } from '../harness/application';
import { bearer, cookie, now, tokenFor } from '../harness/requests';

const PARTY = 'https://app.example.com';
const idp = await startMiddleware({ IDP_AUTHORIZED_PARTIES: PARTY });
const token = (sub = 'user_1', claims = {}) => tokenFor(idp, sub, { azp: PARTY, ...claims });

const warn = vi.spyOn(log, 'warn').mockReturnValue();
const error = vi.spyOn(log, 'error').mockReturnValue();

beforeEach(() => {
  warn.mockClear();
  error.mockClear();
});

const at = (path: string, headers: Record<string, string> = {}, init = {}) =>
  runMiddleware(`http://localhost:3000${path}`, { headers: { host: 'localhost:3000', ...headers }, ...init });
/** Returns the verdict that the middleware passes to the route or page. */
async function verdictAt(path: string, headers: Record<string, string> = {}, init = {}) {
  const { readVerdict } = await import('#lib/http/signed-verdict');
  return readVerdict((await at(path, headers, init)).headers);
}
const user = { user: 'user_1', issuedAt: expect.any(Number), expiresAt: expect.any(Number) };

const act = { sub: 'user_support', iss: 'https://dashboard.clerk.com' };
const actor = { id: 'user_support' };

describe('API requests', () => {
  test.each<[string, () => Record<string, string>, object]>([
    [
      'an agent',
      () => bearer(token('user_1', { act: { ...act, type: 'agent' } })),
      { ...user, actor: { ...actor, type: 'agent' } },
    ],
    ['an empty actor', () => bearer(token('user_1', { act: null })), user],
    [
      'a token of another frontend',
      () => bearer(token('user_1', { azp: 'https://x.example' })),
      { reason: 'token-invalid-authorized-parties' },
    ],
    [
      'cookies without azp',
      () => cookie(token('user_1', { azp: undefined })),
      { reason: 'token-invalid-authorized-parties' },
    ],
  ])('The verdict about a request with %s is $2', async (_what, headers, expected) => {
    expect(await verdictAt('/users/v1/me', headers())).toEqual(expected);
    // The verdict does not change when the credential is cached.
    expect(await verdictAt('/users/v1/me', headers())).toEqual(expected);
  });

  test('A session cookie is accepted only from the origins in IDP_AUTHORIZED_PARTIES, also if its session is cached', async () => {
    const cookies = { ...cookie(token()), 'sec-fetch-site': 'same-site' };
    const post = (origin: string) => verdictAt('/users/v1/me', { ...cookies, origin }, { method: 'POST' });
    expect(await post(PARTY)).toEqual(user);
    expect(await post('https://x.example')).toEqual({ reason: 'foreign-cookie' });
  });

  const organization = { id: 'org_1', role: 'org:admin' };
  test.each<[string, object, object | undefined]>([
    ['version 1', { v: undefined, sts: undefined, org_id: 'org_1', org_role: 'org:admin' }, organization],
    ['version 2', { o: { id: 'org_1', rol: 'admin' } }, organization],
    [
      'version 2 with the longest id',
      { o: { id: '\u{1f600}'.repeat(255), rol: 'admin' } },
      { id: '\u{1f600}'.repeat(255), role: 'org:admin' },
    ],
    ...[{}, ['admin'], 7, '', null, undefined].map((rol): [string, object, undefined] => [
      `version 2 with the role ${JSON.stringify(rol)}`,
      { o: { id: 'org_1', rol } },
      undefined,
    ]),
    ['version 1 with a role that is not text', { v: undefined, org_id: 'org_1', org_role: 7 }, undefined],
    ...['', 'o'.repeat(256), 'org\0', 'org\ud800', 7, null, { id: 'org_1' }].map(
      (id): [string, object, undefined] => [
        `an organization id that is ${JSON.stringify(id).slice(0, 20)}`,
        { o: { id, rol: 'admin' } },
        undefined,
      ],
    ),
  ])(
    'The verdict about a session token of %s has the active organization only with a valid id and a role',
    async (_what, claims, active) => {
      for (const headers of [bearer(token('user_1', claims)), cookie(token('user_1', claims))])
        expect(await verdictAt('/users/v1/me', headers)).toEqual({ ...user, organization: active });
      expect(await verdictAt('/account', cookie(token('user_1', claims)))).toEqual({
        ...user,
        organization: active,
      });
    },
  );

  test.each([
    'user_support',
    0,
    false,
    [],
    {},
    ...['', null, 7, 'x'.repeat(256), 'a\0b', '\ud800'].map((sub) => ({ sub })),
    { ...act, type: 7 },
  ])('The verdict about a token with a malformed claim `act` is `malformed`: %j', async (malformed) => {
    const session = token('user_1', { act: malformed });
    expect(await verdictAt('/users/v1/me', bearer(session))).toEqual({ reason: 'malformed' });
    expect(await verdictAt('/account', { ...cookie(session), 'sec-fetch-dest': 'empty' })).toEqual({
      reason: 'malformed',
    });
  });

  test('Each of many concurrent requests has the user and the actor of its own bearer token or cookie, also when the sessions are cached', async () => {
    const sessions = Array.from({ length: 10 }, (_, index) => `user_${index}`).flatMap((id) => [
      { headers: bearer(token(id)), verdict: { ...user, user: id } },
      { headers: cookie(token(id)), verdict: { ...user, user: id } },
      { headers: bearer(token(id, { act })), verdict: { ...user, user: id, actor } },
    ]);
    for (let round = 0; round < 2; round += 1) {
      const verdicts = sessions.map(({ headers }) => verdictAt('/users/v1/me', headers));
      expect(await Promise.all(verdicts)).toEqual(sessions.map(({ verdict }) => verdict));
    }
  });

  test("The SDK's auth state in a route is the session of the request, or none", async () => {
    const { getAuth } = await import('@clerk/nextjs/server');
    const sessionAt = async (headers: Record<string, string>) =>
      getAuth(
        new NextRequest('http://localhost:3000', { headers: (await at('/users/v1/me', headers)).headers }),
      );
    const impersonated = bearer(token('user_1', { act: { sub: 'user_2' } }));
    expect(await sessionAt(impersonated)).toMatchObject({ userId: 'user_1', actor: { sub: 'user_2' } });
    expect(await sessionAt({})).toMatchObject({ userId: null, isAuthenticated: false });
  });

  test('A client cannot forge a verdict or a session, also not with the cached token of another caller', async () => {
    const { headers } = await at('/users/v1/me', bearer(token('user_victim')));
    const forged = Object.fromEntries([...headers].filter(([name]) => name.startsWith('x-')));
    expect(Object.keys(forged)).toContain('x-identity-link-verdict');
    expect(await verdictAt('/users/v1/me', forged)).toEqual({ reason: 'no-credential' });
    const prefetch = { ...forged, 'x-middleware-prefetch': '1' };
    const passed = [...(await at('/users/v1/me', prefetch)).headers.keys()];
    expect(passed.filter((name) => name.startsWith('x-'))).toEqual([
      'x-clerk-auth-status',
      'x-identity-link-verdict',
    ]);
    expect(await verdictAt('/users/v1/me', { ...forged, ...bearer(token()) })).toEqual(user);
  });

  test('A route gets the query, the accept header and its own cookies', async () => {
    const headers = { cookie: 'theme=dark', accept: 'text/html' };
    const passed = await at('/users/v1/me?__clerk_handshake=x', headers);
    expect(Object.fromEntries(passed.headers)).toMatchObject(headers);
    expect(passed.response.headers.has('location')).toBe(false);
  });
});

describe('Pages', () => {
  const page = { accept: 'text/html', 'sec-fetch-dest': 'document' };

  test.each<[string, () => Record<string, string>, object]>([
    ['session cookies', () => cookie(token()), user],
    ['an impersonated session', () => cookie(token('user_1', { act })), { ...user, actor }],
    ['a token without azp', () => cookie(token('user_1', { azp: undefined })), user],
    ...['https://x.example', `${PARTY}.evil.example`, 7].map(
      (azp): [string, () => Record<string, string>, object] => [
        `a token of the frontend ${azp}`,
        () => cookie(token('user_1', { azp })),
        { reason: 'signed-out' },
      ],
    ),
    [
      'a pending session of another frontend',
      () => cookie(token('user_1', { azp: 'https://x.example', sts: 'pending' })),
      { reason: 'signed-out' },
    ],
    ['a bearer token', () => ({ ...bearer(token()), 'sec-fetch-dest': 'empty' }), { reason: 'signed-out' }],
    [
      'forged headers',
      () => ({ 'x-identity-link-verdict': 'x', 'sec-fetch-dest': 'empty' }),
      { reason: 'signed-out' },
    ],
  ])('The verdict about a page request with %s is $2', async (_what, headers, expected) => {
    expect(await verdictAt('/account', { ...page, ...headers() })).toEqual(expected);
  });

  test('A visitor with an expired session is redirected to the provider, and a server action is not', async () => {
    const expired = cookie(token('user_1', { exp: now() - 60, iat: now() - 120, nbf: now() - 120 }));
    const { response } = await at('/account', { ...page, ...expired });
    expect(new URL(response.headers.get('location') ?? '').pathname).toBe('/v1/client/handshake');
    const action = { ...expired, 'next-action': '7f'.repeat(21), 'content-length': '2' };
    const posted = await at('/account', { ...page, ...action }, { method: 'POST', body: '[]' });
    expect([posted.isPassed, posted.response.headers.get('location')]).toEqual([true, null]);
  });
});

describe('Rejections', () => {
  const action = { 'next-action': '7f'.repeat(21), 'content-length': '2' };
  test.each<[number, string, Record<string, string>, object]>([
    [413, '/auth/v1/register', { 'content-length': '1048577' }, { method: 'POST' }],
    [404, '/', { ...action, 'next-action': '\x1b[31mred' }, { method: 'POST', body: '[]' }],
    [400, '/', { ...action, origin: 'https://evil.example' }, { method: 'POST', body: '[]' }],
  ])('The middleware responds with %i: %s %j', async (status, path, headers, init) => {
    const { response, isPassed } = await at(path, headers, init);
    expect([isPassed, response.status]).toEqual([false, status]);
    expect(await response.json()).toEqual({ message: expect.any(String) });
  });
});

test('A failure of the middleware is a 500 in JSON, and the log names the cause', async () => {
  vi.stubEnv('DATABASE_URL', '');
  setEnvironment();
  const { response } = await at('/users/v1/me');
  expect([response.status, await response.json()]).toEqual([500, { message: 'Internal Server Error' }]);
  const cause = { error: expect.objectContaining({ name: 'InvalidEnvironmentError' }) };
  const requestId = response.headers.get('x-request-id');
  const line = expect.objectContaining({ requestId, route: 'none', status: 500, ...cause });
  expect(error).toHaveBeenCalledExactlyOnceWith(line, 'request');
});

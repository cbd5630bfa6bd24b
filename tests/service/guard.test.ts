import { createHmac } from 'node:crypto';
import { foreignKeys, type Signing } from 'clerk-emulator/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { startStubServer } from '../harness/dependencies/stub-server';
import { PUBLISHABLE_KEY, SECRET_KEY } from '../harness/keys';
import { bearer, cookie, me, now, send, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

// The guard runs before the handler of an API route. It checks the session and passes the internal id of the user to the route.
const unauthorized = { status: 401, body: { message: 'Unauthorized' } };
const TTL_SECONDS = 600;

/** Records requests to the provider's Backend API. The service sends none, because IDP_JWT_KEY is set. */
const backendApi = stopAfterAll(await startStubServer());
const service = stopAfterAll(await startTestService({ environment: { CLERK_API_URL: backendApi.url } }));
beforeEach(() => {
  service.kv.takeCommands();
  service.database.takeStatements();
});

const key = (identityProviderUserId: string) => `auth:user-id-by-idp:${identityProviderUserId}`;
const getMe = (headers: Record<string, string> = {}, query = '') =>
  send(`${service.url}/users/v1/me${query}`, { headers });
const token = (sub: string, claims: Record<string, unknown> = {}, signing?: Signing) =>
  tokenFor(service.idp, sub, claims, signing);

describe('An authenticated request', () => {
  test('The guard passes exactly three fields to the handler', async () => {
    const { status, body } = await me(service.url, token('user_context'));
    expect(status).toBe(200);
    expect(body).toEqual({
      isAuthenticated: true,
      userId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      identityProviderUserId: 'user_context',
    });
  });

  test('The guard accepts a session token that the identity provider has issued', async () => {
    const user = service.idp.createUser({ email: 'ada@example.com', password: 'correct horse battery' });
    const { status, body } = await me(
      service.url,
      service.idp.sessionToken(service.idp.createSession(user.id).id),
    );
    expect(status).toBe(200);
    expect(body).toMatchObject({ identityProviderUserId: user.id });
  });

  test('The guard accepts a session token of version 1, which has other claims than one of version 2', async () => {
    const claims = {
      v: undefined,
      sts: undefined,
      org_id: 'org_1',
      org_role: 'org:admin',
      org_permissions: [],
    };
    expect((await me(service.url, token('user_v1', claims))).status).toBe(200);
  });

  test('For an impersonated session, the guard passes the impersonated user to the handler and not the impersonator', async () => {
    const { body } = await me(service.url, token('user_impersonated', { act: { sub: 'user_admin' } }));
    expect(body).toEqual({
      isAuthenticated: true,
      userId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      identityProviderUserId: 'user_impersonated',
    });
  });

  test('The guard accepts a session cookie only together with the cookie __client_uat', async () => {
    const complete = cookie(token('user_cookie'));
    expect((await getMe(complete)).status).toBe(200);
    const lacking = { cookie: complete.cookie.replace('__client_uat=1; ', '') };
    expect(await getMe(lacking)).toMatchObject(unauthorized);
  });

  test('The first request of a user runs two SQL statements and caches the internal id for 10 minutes', async () => {
    const { body } = await me(service.url, token('user_first'));
    const { userId } = Object(body);
    expect(service.database.takeStatements().map((sql) => sql.split(' ')[0])).toEqual(['SELECT', 'INSERT']);
    expect(service.kv.takeCommands()).toEqual([
      ['get', key('user_first')],
      ['set', key('user_first'), userId, 'ex', String(TTL_SECONDS)],
    ]);
    expect(await service.kv.engine.call('TTL', key('user_first'))).toBeGreaterThan(TTL_SECONDS - 30);
  });

  test('A request with a cache hit takes one KV command and no SQL statement', async () => {
    const { body } = await me(service.url, token('user_hit'));
    service.kv.takeCommands();
    service.database.takeStatements();
    expect((await me(service.url, token('user_hit'))).body).toEqual(body);
    expect(service.kv.takeCommands()).toEqual([['get', key('user_hit')]]);
    expect(service.database.takeStatements()).toEqual([]);
  });

  test('The guard returns the cached internal id of a user', async () => {
    const cached = '01890a5d-ac96-774b-bcce-b302099a8057';
    await service.kv.engine.call('SET', key('user_cached'), cached, 'EX', '60');
    expect((await me(service.url, token('user_cached'))).body).toMatchObject({ userId: cached });
  });

  test('The guard caches the internal id of an imported user even if the id is not a UUIDv7', async () => {
    const imported = '5f0c9a7e-1b2d-4c3e-8f90-a1b2c3d4e5f6';
    await service.database.pool.query('INSERT INTO users (id, identity_provider_user_id) VALUES ($1, $2)', [
      imported,
      'user_imported',
    ]);
    for (const _request of [1, 2, 3]) {
      expect((await me(service.url, token('user_imported'))).body).toMatchObject({ userId: imported });
    }
    expect(service.database.takeStatements()).toHaveLength(1);
  });

  test('A cache miss for an existing user takes one SELECT, one KV read and one KV write', async () => {
    const { body } = await me(service.url, token('user_missed'));
    await service.kv.engine.call('DEL', key('user_missed'));
    service.kv.takeCommands();
    service.database.takeStatements();
    expect((await me(service.url, token('user_missed'))).body).toEqual(body);
    expect(service.database.takeStatements()).toEqual([expect.stringMatching(/^SELECT /)]);
    expect(service.kv.takeCommands().map(([command]) => command)).toEqual(['get', 'set']);
  });

  test.each([
    '',
    'null',
    'true',
    '123',
    '"quoted"',
    'not-an-id',
    '01890A5D-AC96-774B-BCCE-B302099A8057',
    '{}',
  ])('The guard treats a malformed cached value as a miss and replaces the value: %j', async (value) => {
    const { body } = await me(service.url, token('user_malformed'));
    await service.kv.engine.call('SET', key('user_malformed'), value);
    expect((await me(service.url, token('user_malformed'))).body).toEqual(body);
    expect(await service.kv.engine.call('GET', key('user_malformed'))).toBe(Object(body).userId);
  });
});

describe('A request without a verified session', () => {
  const otherKey = foreignKeys().privateKey;
  const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = () => ({
    sub: 'user_forged',
    sid: 'sess_1',
    iss: service.idp.issuer,
    iat: now(),
    nbf: now() - 10,
    exp: now() + 60,
    sts: 'active',
  });
  const tampered = () => {
    const [header, , signature] = token('user_real').split('.');
    return [header, base64url(claims()), signature].join('.');
  };
  const unsigned = (header: unknown, payload: unknown = claims()) =>
    `${base64url(header)}.${base64url(payload)}.AAAA`;
  const cookies = (own: string) => ({ cookie: `${own}; __client_uat=1; __clerk_db_jwt=x` });
  const signedBy = (alg: string) => token('user_forged', {}, { header: { alg, kid: undefined } });

  test.each<[string, () => Record<string, string>]>([
    ['no credential', () => ({})],
    ['an empty bearer', () => ({ authorization: 'Bearer ' })],
    ['a bearer that is not a token', () => bearer('hello')],
    ['a bearer of two dots', () => bearer('..')],
    ['a session token with the scheme Basic', () => ({ authorization: `Basic ${token('user_x')}` })],
    ['a token without a sub', () => bearer(token('user_x', { sub: undefined }))],
    ['a token with an empty sub', () => bearer(token(''))],
    ['a token with a NUL in the sub', () => bearer(token('a\0b'))],
    ['a token with a sub of 256 characters', () => bearer(token('u'.repeat(256)))],
    ['a token with a sub that is not a string', () => bearer(token('user_x', { sub: 7 }))],
    ['a token that expired more than 5 s ago', () => bearer(token('user_x', { exp: now() - 6 }))],
    ['a token that is not valid yet', () => bearer(token('user_x', { nbf: now() + 60 }))],
    ['a token with a time of issue in the future', () => bearer(token('user_x', { iat: now() + 60 }))],
    ['a pending session', () => bearer(token('user_x', { sts: 'pending' }))],
    [
      'a token that the key of another instance signed',
      () => bearer(token('user_forged', {}, { privateKeyPem: otherKey })),
    ],
    ['a token whose claims were changed after it was signed', () => bearer(tampered())],
    ['a token with the algorithm none', () => bearer(signedBy('none'))],
    ['a token signed with the public key as an HMAC secret', () => bearer(signedBy('HS256'))],
    [
      'a token with the type of an OAuth token',
      () => bearer(token('user_forged', {}, { header: { typ: 'at+jwt' } })),
    ],
    ['a token with the subject of a machine', () => bearer(token('mch_machine'))],
    ...[' x', ' Bearer ', '==', ' ='].flatMap((suffix): [string, () => Record<string, string>][] => [
      [
        `a token with the type of an OAuth token, followed by "${suffix}"`,
        () => bearer(token('user_forged', {}, { header: { typ: 'at+jwt' } }) + suffix),
      ],
      [
        `a token with the subject of a machine, followed by "${suffix}"`,
        () => bearer(token('mch_machine') + suffix),
      ],
      [
        `a token with the subject of a machine in a cookie, followed by "${suffix}"`,
        () => cookie(token('mch_machine') + suffix),
      ],
    ]),
    ['an API key', () => bearer('ak_0123456789abcdef')],
    ['a machine token', () => bearer('mt_0123456789abcdef')],
    ['an OAuth access token', () => bearer('oat_0123456789abcdef')],
    ['a machine token without scheme', () => ({ authorization: 'mt_0123456789abcdef' })],
    ['a token with a type that is not ASCII', () => bearer(unsigned({ alg: 'RS256', typ: '☃' }))],
    ['a token with an algorithm that is not ASCII', () => bearer(unsigned({ alg: '☃', typ: 'JWT' }))],
    ['a token whose JWT header is null', () => bearer(unsigned(null))],
    ['a token whose claims are null', () => bearer(unsigned({ alg: 'RS256', typ: 'JWT' }, null))],
    [
      'a token with a key id that contains a line break',
      () => bearer(unsigned({ alg: 'RS256', typ: 'JWT', kid: 'a\r\nb' })),
    ],
    ['a session cookie with a token whose claims are null', () => cookie(unsigned({ alg: 'RS256' }, null))],
    [
      'a session cookie with a token whose type is not ASCII',
      () => cookie(unsigned({ alg: 'RS256', typ: '☃' })),
    ],
    ['a handshake cookie after a tab character', () => cookies('a=b;\t__clerk_handshake=x')],
    ['a handshake nonce after a tab character', () => cookies('a=b;\t__clerk_handshake_nonce=x')],
    [
      'a refresh cookie of an expired session',
      () => ({
        cookie: `__session=${token('user_x', { exp: now() - 60 })}; __refresh=x; __refresh_${'a'.repeat(8)}=x; __client_uat=1; __clerk_db_jwt=x`,
      }),
    ],
  ])('A request gets a 401 without a redirect or a call to a dependency: %s', async (_what, headers) => {
    for (const accept of ['application/json', 'text/html']) {
      const response = await getMe({ ...headers(), accept });
      expect(response).toMatchObject(unauthorized);
      expect([...response.headers.keys()].filter((name) => name.startsWith('x-clerk'))).toEqual([]);
      expect(response.headers.get('set-cookie')).toBeNull();
    }
    expect(service.kv.takeCommands()).toEqual([]);
    expect(service.database.takeStatements()).toEqual([]);
    expect(backendApi.calls).toEqual([]);
  });

  test.each([
    '?__clerk_handshake=x',
    '?__clerk_handshake_nonce=x',
    '?__clerk_redirect_url=https://example.com',
    '?__clerk_db_jwt=x',
    '?__clerk_synced=true&__clerk_hs_reason=x',
  ])(
    "A request without a session and with query parameters of the provider's SDK gets a 401: %s",
    async (query) => {
      for (const headers of [
        { accept: 'text/html' },
        { 'sec-fetch-dest': 'document' },
        { cookie: '__clerk_handshake=x' },
      ]) {
        expect(await getMe(headers, query)).toMatchObject(unauthorized);
      }
      expect(backendApi.calls).toEqual([]);
    },
  );

  test("A request with forged headers of the provider's SDK gets a 401", async () => {
    const forged = token('user_forged', { exp: now() + 60 });
    for (const secret of ['', SECRET_KEY, PUBLISHABLE_KEY]) {
      const response = await getMe({
        'x-clerk-auth-status': 'signed-in',
        'x-clerk-auth-token': forged,
        'x-clerk-auth-signature': createHmac('sha1', secret).update(forged).digest('hex'),
        'x-clerk-auth-reason': '',
        'x-clerk-auth-message': '',
        'x-clerk-clerk-url': `${service.url}/users/v1/me`,
        'x-middleware-subrequest': 'middleware:middleware:middleware:middleware:middleware',
      });
      expect(response).toMatchObject(unauthorized);
    }
  });
});

describe('API paths and features of Next.js', () => {
  test('The _rsc parameter of Next.js does not redirect an API request', async () => {
    const response = await getMe(bearer(token('user_path')), '?_rsc=x');
    expect(response).toMatchObject({ status: 200, body: { identityProviderUserId: 'user_path' } });
  });

  test.each([
    { rsc: '1' },
    { 'next-router-prefetch': '1', rsc: '1' },
    { 'x-middleware-prefetch': '1' },
    { 'next-action': 'x' },
    { 'x-nextjs-data': '1' },
  ])(
    'Headers of Next.js do not change the 401 for an API request without a credential: %j',
    async (headers) => {
      const response = await getMe(headers);
      expect(response).toMatchObject(unauthorized);
      expect(response.headers.has('location')).toBe(false);
    },
  );

  test.each([
    '/users/v1/me/',
    '/users/v1/m%65',
    '/users/v1/%zz',
    '/users/v1/nobody',
    '/auth/v1',
    '/webhooks/v1/x',
    '/users/%E0%A4',
    '/users/v1/%6de',
    '/users/v1/%2e%2e/v1/me%2e',
  ])('An unknown path or another spelling of the path of a route gets a 404 in JSON: %s', async (path) => {
    const response = await send(`${service.url}${path}`);
    expect(response).toMatchObject({ status: 404, body: { message: 'Not found' } });
    expect(response.headers.get('x-request-id')).toMatch(/./);
  });
});

test.each(['/', '/account', '/sign-in'])(
  'The page %s does not redirect to another site that the query parameter __clerk_redirect_url names',
  async (path) => {
    for (const target of ['https://evil.example/x', 'javascript:alert(1)', 'x']) {
      const { status, headers } = await send(
        `${service.url}${path}?__clerk_redirect_url=${encodeURIComponent(target)}`,
        {
          headers: { accept: 'text/html', 'sec-fetch-dest': 'document', cookie: '__clerk_db_jwt=dvb_x' },
        },
      );
      expect(status).toBeLessThan(500);
      expect(headers.get('location') ?? '').not.toMatch(/^https:\/\/evil|^javascript/);
    }
  },
);

test('A page request with an API key, a machine token or an OAuth token does not make the service call the provider, and a broken handshake does not cause a 5xx', async () => {
  for (const authorization of ['Bearer ak_0123456789', 'Bearer mt_0123456789', 'Bearer oat_0123456789']) {
    await send(`${service.url}/`, { headers: { authorization } });
  }
  expect(backendApi.calls).toEqual([]);
  expect((await send(`${service.url}/account?__clerk_handshake=abc`)).status).toBeLessThan(500);
});

test('A request cannot make the service log a session token or a forged line', async () => {
  const { status } = await getMe({ ...bearer(token('user_debug')), 'x-clerk-debug': 'true' });
  expect(status).toBe(200);
  await send(`${service.url}/account`, {
    headers: {
      ...cookie(token('user_debug')),
      'x-clerk-debug': '1',
    },
  });
  const forged = encodeURIComponent('\n{"msg":"forged"}');
  expect((await send(`${service.url}/_next/image?w=640&q=75&url=%2Ficon.svg${forged}`)).status).toBe(404);
  const odd = Buffer.from(JSON.stringify({ alg: 'RS256', typ: 'JWT', kid: '\n{"msg":"forged"}' })).toString(
    'base64url',
  );
  expect((await send(`${service.url}/account?__clerk_handshake=${odd}.e30.x`)).status).toBeLessThan(500);
  await send(`${service.url}/account`, { headers: { cookie: `__clerk_handshake=${odd}.e30.x` } });
  // With `x-clerk-debug`, the SDK would log the session token after a line that contains `clerk debug`.
  expect(service.output()).not.toMatch(/clerk debug|forged/);
});

test('The guard accepts a token that expired 1 s ago, because clocks may differ. It also accepts a token whose issuer is the URL of a proxy', async () => {
  expect((await me(service.url, token('user_skew', { exp: now() - 1 }))).status).toBe(200);
  const iss = 'https://app.example.com/__clerk';
  expect((await me(service.url, token('user_of_proxy', { iss }))).status).toBe(200);
});

test('The register route receives the body of a request whose query contains a parameter that starts with __clerk', async () => {
  const response = await send(`${service.url}/auth/v1/register?__clerk_x=1&a=b`, {
    method: 'POST',
    headers: bearer(token('user_query')),
    body: '{"identityProviderUserId":"user_by_query"}',
  });
  expect(response).toMatchObject({ status: 201, body: { identityProviderUserId: 'user_by_query' } });
});

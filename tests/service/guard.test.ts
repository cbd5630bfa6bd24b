import { createHmac } from 'node:crypto';
import { foreignKeys, type Signing } from 'clerk-emulator/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { startImpostor } from '../harness/parts/impostor';
import { bearer, cookie, me, now, send, tokenFor } from '../harness/requests';
import { PUBLISHABLE_KEY, SECRET_KEY, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const unauthorized = { status: 401, body: { message: 'Unauthorized' } };
const TTL_SECONDS = 600;

/** With IDP_JWT_KEY the service has no reason to ask it anything. */
const backendApi = stopAfterAll(await startImpostor());
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

describe('an authenticated request', () => {
  test('gets exactly the three fields of the context', async () => {
    const { status, body } = await me(service.url, token('user_context'));
    expect(status).toBe(200);
    expect(body).toEqual({
      isAuthenticated: true,
      userId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      identityProviderUserId: 'user_context',
    });
  });

  test('is known by the session token of a real session', async () => {
    const user = service.idp.createUser({ email: 'ada@example.com', password: 'correct horse battery' });
    const { status, body } = await me(
      service.url,
      service.idp.sessionToken(service.idp.createSession(user.id).id),
    );
    expect(status).toBe(200);
    expect(body).toMatchObject({ identityProviderUserId: user.id });
  });

  test('An impersonated session counts as the impersonated user, without the actor', async () => {
    const { body } = await me(service.url, token('user_impersonated', { act: { sub: 'user_admin' } }));
    expect(body).toEqual({
      isAuthenticated: true,
      userId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      identityProviderUserId: 'user_impersonated',
    });
  });

  test('may carry its token in a cookie, as a browser does', async () => {
    const complete = cookie(token('user_cookie'));
    expect((await getMe(complete)).status).toBe(200);
    const lacking = { cookie: complete.cookie.replace('__client_uat=1; ', '') };
    expect(await getMe(lacking)).toMatchObject(unauthorized);
  });

  test('on first sight is registered with two statements, and cached for 10 minutes', async () => {
    const { body } = await me(service.url, token('user_first'));
    const { userId } = Object(body);
    expect(service.database.takeStatements().map((sql) => sql.split(' ')[0])).toEqual(['SELECT', 'INSERT']);
    expect(service.kv.takeCommands()).toEqual([
      ['get', key('user_first')],
      ['set', key('user_first'), userId, 'ex', String(TTL_SECONDS)],
    ]);
    expect(await service.kv.engine.call('TTL', key('user_first'))).toBeGreaterThan(TTL_SECONDS - 30);
  });

  test('on a cache hit makes one KV round trip and no SQL', async () => {
    const { body } = await me(service.url, token('user_hit'));
    service.kv.takeCommands();
    service.database.takeStatements();
    expect((await me(service.url, token('user_hit'))).body).toEqual(body);
    expect(service.kv.takeCommands()).toEqual([['get', key('user_hit')]]);
    expect(service.database.takeStatements()).toEqual([]);
  });

  test('uses the cached internal id', async () => {
    const cached = '01890a5d-ac96-774b-bcce-b302099a8057';
    await service.kv.engine.call('SET', key('user_cached'), cached, 'EX', '60');
    expect((await me(service.url, token('user_cached'))).body).toMatchObject({ userId: cached });
  });

  test('caches any id that the column holds, also that of an imported row', async () => {
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

  test('on a miss for an existing user costs one SELECT and one KV write', async () => {
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
  ])(
    'takes a cached value that the service could not have stored for a miss, and replaces it: %j',
    async (value) => {
      const { body } = await me(service.url, token('user_malformed'));
      await service.kv.engine.call('SET', key('user_malformed'), value);
      expect((await me(service.url, token('user_malformed'))).body).toEqual(body);
      expect(await service.kv.engine.call('GET', key('user_malformed'))).toBe(Object(body).userId);
    },
  );
});

describe('a request without a verified session', () => {
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
    ['no token', () => bearer('hello')],
    ['two dots', () => bearer('..')],
    ['another scheme', () => ({ authorization: `Basic ${token('user_x')}` })],
    ['no sub', () => bearer(token('user_x', { sub: undefined }))],
    ['an empty sub', () => bearer(token(''))],
    ['a sub that is no id', () => bearer(token('a\0b'))],
    ['a sub of 256 characters', () => bearer(token('u'.repeat(256)))],
    ['a sub that is no string', () => bearer(token('user_x', { sub: 7 }))],
    ['expired by more than the skew', () => bearer(token('user_x', { exp: now() - 6 }))],
    ['valid later only', () => bearer(token('user_x', { nbf: now() + 60 }))],
    ['issued later', () => bearer(token('user_x', { iat: now() + 60 }))],
    ['a pending session', () => bearer(token('user_x', { sts: 'pending' }))],
    ['the key of another instance', () => bearer(token('user_forged', {}, { privateKeyPem: otherKey }))],
    ['changed claims', () => bearer(tampered())],
    ['algorithm none', () => bearer(signedBy('none'))],
    ['the public key as an HMAC secret', () => bearer(signedBy('HS256'))],
    ['the type of an OAuth token', () => bearer(token('user_forged', {}, { header: { typ: 'at+jwt' } }))],
    ['the subject of a machine', () => bearer(token('mch_machine'))],
    ...[' x', ' Bearer ', '==', ' ='].flatMap((behind): [string, () => Record<string, string>][] => [
      [
        `the type of an OAuth token, with "${behind}" behind it`,
        () => bearer(token('user_forged', {}, { header: { typ: 'at+jwt' } }) + behind),
      ],
      [`the subject of a machine, with "${behind}" behind it`, () => bearer(token('mch_machine') + behind)],
      [`the same in a cookie, with "${behind}" behind it`, () => cookie(token('mch_machine') + behind)],
    ]),
    ['an API key', () => bearer('ak_0123456789abcdef')],
    ['a machine token', () => bearer('mt_0123456789abcdef')],
    ['an OAuth access token', () => bearer('oat_0123456789abcdef')],
    ['a machine token without scheme', () => ({ authorization: 'mt_0123456789abcdef' })],
    ['a header type that is no ASCII', () => bearer(unsigned({ alg: 'RS256', typ: '☃' }))],
    ['an algorithm that is no ASCII', () => bearer(unsigned({ alg: '☃', typ: 'JWT' }))],
    ['a header that is null', () => bearer(unsigned(null))],
    ['claims that are null', () => bearer(unsigned({ alg: 'RS256', typ: 'JWT' }, null))],
    ['a key id with a line break', () => bearer(unsigned({ alg: 'RS256', typ: 'JWT', kid: 'a\r\nb' }))],
    ['a session cookie of null claims', () => cookie(unsigned({ alg: 'RS256' }, null))],
    ['a session cookie of an odd type', () => cookie(unsigned({ alg: 'RS256', typ: '☃' }))],
    ['a handshake cookie behind a tab', () => cookies('a=b;\t__clerk_handshake=x')],
    ['a handshake nonce behind a tab', () => cookies('a=b;\t__clerk_handshake_nonce=x')],
    [
      'a refresh cookie of an expired session',
      () => ({
        cookie: `__session=${token('user_x', { exp: now() - 60 })}; __refresh=x; __refresh_${'a'.repeat(8)}=x; __client_uat=1; __clerk_db_jwt=x`,
      }),
    ],
  ])(
    'is a 401, asks neither cache nor database nor the provider, and is no redirect: %s',
    async (_what, headers) => {
      for (const accept of ['application/json', 'text/html']) {
        const answer = await getMe({ ...headers(), accept });
        expect(answer).toMatchObject(unauthorized);
        expect([...answer.headers.keys()].filter((name) => name.startsWith('x-clerk'))).toEqual([]);
        expect(answer.headers.get('set-cookie')).toBeNull();
      }
      expect(service.kv.takeCommands()).toEqual([]);
      expect(service.database.takeStatements()).toEqual([]);
      expect(backendApi.calls).toEqual([]);
    },
  );

  test.each([
    '?__clerk_handshake=x',
    '?__clerk_handshake_nonce=x',
    '?__clerk_redirect_url=https://example.com',
    '?__clerk_db_jwt=x',
    '?__clerk_synced=true&__clerk_hs_reason=x',
  ])("gets the same 401 with the SDK's own parameters: %s", async (query) => {
    for (const headers of [
      { accept: 'text/html' },
      { 'sec-fetch-dest': 'document' },
      { cookie: '__clerk_handshake=x' },
    ]) {
      expect(await getMe(headers, query)).toMatchObject(unauthorized);
    }
    expect(backendApi.calls).toEqual([]);
  });

  test('gets nowhere with forged headers of the SDK', async () => {
    const forged = token('user_forged', { exp: now() + 60 });
    for (const secret of ['', SECRET_KEY, PUBLISHABLE_KEY]) {
      const answer = await getMe({
        'x-clerk-auth-status': 'signed-in',
        'x-clerk-auth-token': forged,
        'x-clerk-auth-signature': createHmac('sha1', secret).update(forged).digest('hex'),
        'x-clerk-auth-reason': '',
        'x-clerk-auth-message': '',
        'x-clerk-clerk-url': `${service.url}/users/v1/me`,
        'x-middleware-subrequest': 'middleware:middleware:middleware:middleware:middleware',
      });
      expect(answer).toMatchObject(unauthorized);
    }
  });
});

describe('an API path answers as itself, not as the framework', () => {
  test("no redirect by the framework's own parameter", async () => {
    const answer = await getMe(bearer(token('user_path')), '?_rsc=x');
    expect(answer).toMatchObject({ status: 200, body: { identityProviderUserId: 'user_path' } });
  });

  test.each([
    { rsc: '1' },
    { 'next-router-prefetch': '1', rsc: '1' },
    { 'x-middleware-prefetch': '1' },
    { 'next-action': 'x' },
    { 'x-nextjs-data': '1' },
  ])("no redirect and no other answer by the framework's own headers: %j", async (headers) => {
    const answer = await getMe(headers);
    expect(answer).toMatchObject(unauthorized);
    expect(answer.headers.has('location')).toBe(false);
  });

  test.each([
    '/users/v1/me/',
    '/users/v1/m%65',
    '/users/v1/%zz',
    '/users/v1/nobody',
    '/auth/v1',
    '/webhooks/x',
    '/users/%E0%A4',
    '/users/v1/%6de',
    '/users/v1/%2e%2e/v1/me%2e',
  ])('an unknown or oddly spelled one is a 404 in JSON: %s', async (path) => {
    const answer = await send(`${service.url}${path}`);
    expect(answer).toMatchObject({ status: 404, body: { message: 'Not found' } });
    expect(answer.headers.get('x-request-id')).toMatch(/./);
  });
});

test.each(['/', '/account', '/sign-in'])(
  'no parameter leads a page, and the session with it, to another host: %s',
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

test('a page calls the provider for no machine token, and survives a broken handshake', async () => {
  for (const authorization of ['Bearer ak_0123456789', 'Bearer mt_0123456789', 'Bearer oat_0123456789']) {
    await send(`${service.url}/`, { headers: { authorization } });
  }
  expect(backendApi.calls).toEqual([]);
  expect((await send(`${service.url}/account?__clerk_handshake=abc`)).status).toBeLessThan(500);
});

test('no header makes the service print a session, and no request a line of its own', async () => {
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
  expect(service.output()).not.toMatch(/clerk debug|forged/);
});

test('a token within the clock skew, or with the issuer of a proxy, is a session', async () => {
  expect((await me(service.url, token('user_skew', { exp: now() - 1 }))).status).toBe(200);
  const iss = 'https://app.example.com/__clerk';
  expect((await me(service.url, token('user_of_proxy', { iss }))).status).toBe(200);
});

test('the query and the body of an API request reach the route as they were sent', async () => {
  const answer = await send(`${service.url}/auth/v1/register?__clerk_x=1&a=b`, {
    method: 'POST',
    headers: bearer(token('user_query')),
    body: '{"identityProviderUserId":"user_by_query"}',
  });
  expect(answer).toMatchObject({ status: 201, body: { identityProviderUserId: 'user_by_query' } });
});

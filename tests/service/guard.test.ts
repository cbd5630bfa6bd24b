import { createHmac } from 'node:crypto';
import type { Signing } from 'clerk-emulator/testing';
import { describe, expect, test } from 'vitest';
import { PUBLISHABLE_KEY, SECRET_KEY } from '../harness/keys';
import { bearer, cookie, me, now, send, tokenFor } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

// The guard runs before the handler of an API route. It checks the session and passes the internal id of the user to the route.
const unauthorized = { status: 401, body: { message: 'Unauthorized' } };

const service = sharedService();

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

  test('The guard caches the internal id of an imported user even if the id is not a UUIDv7', async () => {
    const imported = '5f0c9a7e-1b2d-4c3e-8f90-a1b2c3d4e5f6';
    await service.database.pool.query('INSERT INTO users (id, identity_provider_user_id) VALUES ($1, $2)', [
      imported,
      'user_imported',
    ]);
    const timing = async () => {
      const { body, headers } = await me(service.url, token('user_imported'));
      expect(body).toMatchObject({ userId: imported });
      return headers.get('server-timing');
    };
    await expect.poll(timing).toContain('cache;desc=hit');
  });
});

describe('A request without a verified session', () => {
  const cookies = (own: string) => ({ cookie: `${own}; __client_uat=1; __clerk_db_jwt=x` });

  test.each<[string, () => Record<string, string>]>([
    ['no credential', () => ({})],
    ['a bearer that is not a token', () => bearer('hello')],
    ['a pending session', () => bearer(token('user_x', { sts: 'pending' }))],
    ['a machine token', () => bearer('mt_0123456789abcdef')],
    ['a handshake cookie after a tab character', () => cookies('a=b;\t__clerk_handshake=x')],
    [
      'a refresh cookie of an expired session',
      () => cookies(`__session=${token('user_x', { exp: now() - 60 })}; __refresh=x`),
    ],
  ])('A request gets a 401 without a redirect: %s', async (_what, headers) => {
    for (const accept of ['application/json', 'text/html']) {
      const response = await getMe({ ...headers(), accept });
      expect(response).toMatchObject(unauthorized);
      expect([...response.headers.keys()].filter((name) => name.startsWith('x-clerk'))).toEqual([]);
      expect(response.headers.get('set-cookie')).toBeNull();
    }
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

  test.each(['/users/v1/me/', '/users/v1/%6de', '/users/v1/%zz', '/users/v1/nobody', '/auth/v1'])(
    'An unknown path or another spelling of the path of a route gets a 404 in JSON: %s',
    async (path) => {
      const response = await send(`${service.url}${path}`);
      expect(response).toMatchObject({ status: 404, body: { message: 'Not found' } });
      expect(response.headers.get('x-request-id')).toMatch(/./);
    },
  );
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

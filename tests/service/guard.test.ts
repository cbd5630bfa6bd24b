import { expect, test } from 'vitest';
import { bearer, cookie, me, send, tokenFor } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

// The guard runs before the handler of an API route. It checks the session and passes the internal id of the user to the route.
// tests/in-process/middleware.test.ts checks which sessions are valid.
const unauthorized = { status: 401, body: { message: 'Unauthorized' } };

const service = sharedService();

const getMe = (headers: Record<string, string> = {}, query = '') =>
  send(`${service.url}/users/v1/me${query}`, { headers });
const token = (sub: string, claims: Record<string, unknown> = {}) => tokenFor(service.idp, sub, claims);

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

test.each(['/users/v1/%zz', '/users/v1/nobody', '/auth/v1'])(
  'An unknown path of the API gets a 404 in JSON: %s',
  async (path) => {
    const response = await send(`${service.url}${path}`);
    expect(response).toMatchObject({ status: 404, body: { message: 'Not found' } });
    expect(response.headers.get('x-request-id')).toMatch(/./);
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

test('The register route receives the body of a request whose query contains a parameter that starts with __clerk', async () => {
  const response = await send(`${service.url}/auth/v1/register?__clerk_x=1&a=b`, {
    method: 'POST',
    headers: bearer(token('user_query')),
    body: '{"identityProviderUserId":"user_by_query"}',
  });
  expect(response).toMatchObject({ status: 201, body: { identityProviderUserId: 'user_by_query' } });
});

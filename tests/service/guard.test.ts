import { expect, test } from 'vitest';
import { bearer, cookie, send, tokenFor } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

// The guard runs before the handler of an API route. It checks the session and passes the internal id of the user to the route.
// tests/in-process/middleware.test.ts checks which sessions are valid.

const service = sharedService();

const getMe = (headers: Record<string, string> = {}, query = '') =>
  send(`${service.url}/users/v1/me${query}`, { headers });
const token = (sub: string, claims: Record<string, unknown> = {}) => tokenFor(service.idp, sub, claims);

test('The _rsc parameter of Next.js does not redirect an API request', async () => {
  const response = await getMe(bearer(token('user_path')), '?_rsc=x');
  expect(response).toMatchObject({ status: 200, body: { identityProviderUserId: 'user_path' } });
});

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

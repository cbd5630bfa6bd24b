import type { Emulator } from 'clerk-emulator';
import { beforeAll, expect, test, vi } from 'vitest';
import { countUsers } from '#lib/idp/backend-api';
import { bearer, tokenFor } from '../../harness/requests';
import { KEYS, loadService, type Service, startInstance } from '../service';

/** Expected versions of the SDK, as package@version. tests/sdk/main.ts sets them. */
const NEXTJS = process.env['CHECK_SDK_NEXTJS'] ?? '';
const BACKEND = process.env['CHECK_SDK_BACKEND'] ?? '';

let provider: Emulator;
let service: Service;
beforeAll(async () => {
  provider = await startInstance(KEYS.test);
  // If IDP_JWT_KEY is not set, the SDK requests the public keys of the Clerk instance from the Backend API.
  service = await loadService({ ...KEYS.test, CLERK_API_URL: provider.url });
  return () => provider.stop();
});

/** Returns the path, the user agent and the API version of the HTTP calls that a function makes. */
async function callsOf(act: () => Promise<unknown>) {
  const before = service.calls.length;
  await act();
  return service.calls.slice(before).map(({ url, headers }) => ({
    path: new URL(url).pathname,
    userAgent: headers.get('user-agent'),
    version: headers.get('clerk-api-version'),
  }));
}

/** The request that the SDK sends to get the public keys of the Clerk instance. */
const keyRequest = { path: '/v1/jwks', userAgent: BACKEND, version: expect.any(String) };

test('The middleware runs the expected SDK versions, and lib/idp/backend-api.ts requests the same API version as the SDK', async () => {
  const token = tokenFor(provider, 'user_1');
  const keys = await callsOf(() => service.api(bearer(token)));
  const nonce = await callsOf(() => service.pass('/account?__clerk_handshake_nonce=nonce_unknown'));
  process.stdout.write(`Loaded: ${[...nonce, ...keys].map(({ userAgent }) => userAgent).join(', ')}\n`);
  expect(keys).toEqual([keyRequest]);
  const [exchange] = nonce;
  expect(nonce).toEqual([
    { path: '/v1/clients/handshake_payload', userAgent: NEXTJS, version: keys[0]?.version },
  ]);
  const [own] = await callsOf(countUsers);
  expect(own).toMatchObject({ path: '/v1/users/count', version: exchange?.version });
});

test('The authentication adapter verifies a session with the expected version of the SDK', async () => {
  // Loads the SDK again, because the loaded copy has cached the public keys. `loadService` has replaced the global `fetch`, so
  // `callsOf` also returns the HTTP calls of the new copy.
  vi.resetModules();
  const { createAuthenticationAdapter } = await import('#lib/idp/authentication-adapter');
  const adapter = createAuthenticationAdapter({
    secretKey: KEYS.test.IDP_SECRET_KEY,
    publishableKey: KEYS.test.IDP_PUBLISHABLE_KEY,
    apiUrl: provider.url,
  });
  const request = new Request('http://localhost:3000/', { headers: bearer(tokenFor(provider, 'user_1')) });
  const calls = await callsOf(async () => {
    expect(await adapter.authenticate(request)).toMatchObject({ isAuthenticated: true, userId: 'user_1' });
  });
  expect(calls).toEqual([keyRequest]);
});

import { createClerkClient } from '@clerk/backend';
import { describe, expect, test, vi } from 'vitest';
import { createAuthenticationAdapter } from '#lib/authentication/adapter';
import { authenticateRequest } from '#lib/authentication/authenticate-request';
import type { Resolve } from '#lib/core/resolve';
import { startProvider } from '../harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY } from '../harness/keys';
import { bearer, now, tokenFor } from '../harness/requests';
import { stopAfterAll } from '../vitest/stop-after-all';

// The authentication adapter authenticates requests with Clerk's SDK for servers. The adapter does not depend on Next.js.
vi.mock('@clerk/backend', { spy: true });
const url = 'https://app.example.com/any';
const keys = { secretKey: SECRET_KEY, publishableKey: PUBLISHABLE_KEY };
const idp = stopAfterAll(await startProvider());
const resolveId = vi.hoisted(() => vi.fn<Resolve>());
vi.mock('#lib/core/resolve', () => ({ createResolve: () => resolveId }));
resolveId.mockImplementation(async (_kind, id) => ({ state: 'linked', id: `internal-${id}`, cache: 'hit' }));

test('The authentication adapter disables the telemetry of the SDK', () => {
  createAuthenticationAdapter(keys);
  const [created] = vi.mocked(createClerkClient).mock.results;
  expect(created).toMatchObject({ type: 'return', value: { telemetry: { isEnabled: false } } });
});

describe.each([
  ['JWKS', {}],
  ['public key', { jwtKey: idp.publicKeyPem }],
])('The authentication adapter that uses the %s', (name, jwtKey) => {
  const port = createAuthenticationAdapter({ ...keys, apiUrl: idp.url, ...jwtKey });
  const authenticate = (headers: Record<string, string>) =>
    authenticateRequest(new Request(url, { headers }), port);

  test('With authorized parties, only a token of one of them authenticates a request', async () => {
    const authorizedParties = ['https://app.example.com'];
    const strict = createAuthenticationAdapter({ ...keys, apiUrl: idp.url, ...jwtKey, authorizedParties });
    const userOf = async (azp?: string) => {
      const headers = bearer(tokenFor(idp, 'user_1', { azp }));
      return (await strict.authenticate(new Request(url, { headers })))?.user;
    };
    expect(await userOf('https://app.example.com')).toBe('user_1');
    for (const azp of ['https://other.example.com', undefined]) expect(await userOf(azp)).toBeUndefined();
  });

  test('The use case returns the internal id and the identity-provider user id of a verified session', async () => {
    const { id } = idp.createUser({ email: `${name.replace(' ', '-')}@example.com` });
    const headers = bearer(idp.sessionToken(idp.createSession(id).id));
    expect(await authenticate(headers)).toEqual({
      isAuthenticated: true,
      userId: `internal-${id}`,
      identityProviderUserId: id,
    });
  });

  test('The lookup gets the issue time of the token. The request of a forgotten user is unauthenticated', async () => {
    vi.mocked(resolveId).mockClear().mockResolvedValueOnce({ state: 'forgotten' });
    const iat = now() - 30;
    expect(await authenticate(bearer(tokenFor(idp, 'user_1', { iat })))).toBeUndefined();
    expect(resolveId).toHaveBeenCalledExactlyOnceWith('user', 'user_1', iat);
  });

  test.each<[string, () => Record<string, string>]>([
    ['an expired token', () => bearer(tokenFor(idp, 'user_1', { exp: 1 }))],
    ['a pending session', () => bearer(tokenFor(idp, 'user_1', { sts: 'pending' }))],
    ['a token without a session id', () => bearer(tokenFor(idp, 'user_1', { sid: undefined }))],
    ['a handshake token for which the SDK throws an error', () => ({ cookie: '__clerk_handshake=x' })],
    [
      'the headers of a page load, for which the SDK starts a handshake',
      () => ({ 'sec-fetch-dest': 'document' }),
    ],
  ])('A request with %s is unauthenticated, and no user is looked up', async (_what, headers) => {
    vi.mocked(resolveId).mockClear();
    expect(await authenticate(headers())).toBeUndefined();
    expect(resolveId).not.toHaveBeenCalled();
  });
});

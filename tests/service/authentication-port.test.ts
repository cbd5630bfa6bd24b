import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { authenticateRequest } from '#lib/authentication/authenticate-request';
import type { AuthenticationPort } from '#lib/authentication/port';
import { createAuthenticationAdapter } from '#lib/idp/authentication-adapter';
import { type IdentityProvider, startIdentityProvider } from '../../dev/idp/server';
import { bearer, tokenFor } from '../harness/requests';
import { PUBLISHABLE_KEY, SECRET_KEY } from '../harness/service';

let idp: IdentityProvider;
const adapters: Record<string, AuthenticationPort> = {};

beforeAll(async () => {
  idp = await startIdentityProvider({
    secretKey: SECRET_KEY,
    publishableKey: PUBLISHABLE_KEY,
    webhook: undefined,
  });
  const keys = { secretKey: SECRET_KEY, publishableKey: PUBLISHABLE_KEY, apiUrl: idp.url };
  adapters['JWKS'] = createAuthenticationAdapter(keys);
  adapters['public key'] = createAuthenticationAdapter({ ...keys, jwtKey: idp.publicKeyPem });
});
afterAll(() => idp?.stop());

const resolveUserId = vi.fn(async (id: string) => `internal-${id}`);
const authenticate = (name: string, headers: Record<string, string>) => {
  const port = adapters[name];
  if (!port) throw new Error(`No adapter ${name}`);
  return authenticateRequest(new Request('https://app.example.com/any', { headers }), port, resolveUserId);
};

describe.each(['JWKS', 'public key'])('the authentication port over the real SDK, by %s', (name) => {
  test('resolves a verified session to the authenticated context', async () => {
    const { id } = idp.createUser({ email: `${name.replace(' ', '-')}@example.com` });
    const headers = bearer(idp.sessionToken(idp.createSession(id).id));
    expect(await authenticate(name, headers)).toEqual({
      isAuthenticated: true,
      userId: `internal-${id}`,
      identityProviderUserId: id,
    });
  });

  test.each<[string, () => Record<string, string>]>([
    ['no credential', () => ({})],
    ['no token', () => bearer('hello')],
    ['an expired token', () => bearer(tokenFor(idp, 'user_1', { exp: 1 }))],
    ['a pending session', () => bearer(tokenFor(idp, 'user_1', { sts: 'pending' }))],
    ['an empty user id', () => bearer(tokenFor(idp, ''))],
    ['a machine token', () => bearer('ak_0123456789')],
  ])('resolves to nothing, and looks nobody up: %s', async (_what, headers) => {
    resolveUserId.mockClear();
    expect(await authenticate(name, headers())).toBeUndefined();
    expect(resolveUserId).not.toHaveBeenCalled();
  });
});

import { beforeAll, expect, test } from 'vitest';
import { bearer, now, tokenFor } from '../../harness/requests';
import { instance, KEYS, loadService, routeHeaders, type Service } from '../service';

/** Last words of the names of the headers `x-clerk-auth-status`, `x-clerk-auth-token` and `x-clerk-auth-signature`. */
const NAMES = ['status', 'token', 'signature'] as const;
const JWT_KEY = { IDP_JWT_KEY: instance.signingKey.publicKeyPem };

let service: Service;
beforeAll(async () => {
  service = await loadService({ ...KEYS.test, ...JWT_KEY });
});

const token = (sub: string, claims: Record<string, unknown> = {}) => tokenFor(instance, sub, claims);

test('The SDK passes the status, token and signature of a session to the route in request headers', async () => {
  const value = token('user_1');
  const headers = routeHeaders(await service.sdkMiddleware(bearer(value)));
  expect(NAMES.map((name) => headers.get(`x-clerk-auth-${name}`))).toEqual([
    'signed-in',
    value,
    expect.stringMatching(/^[0-9a-f]{40,}$/),
  ]);
});

test('The SDK reports the reason for a rejected token in a header of its response', async () => {
  const response = await service.sdkMiddleware(bearer(token('user_1', { exp: now() - 60 })));
  expect(routeHeaders(response).get('x-clerk-auth-status')).toBe('signed-out');
  expect(response.headers.get('x-clerk-auth-reason')).toMatch(/^(?:session-)?token-expired/);
});

/** Returns the headers that the service's middleware passes to a route. */
const passed = async (sub: string) => routeHeaders(await service.pass('/users/v1/me', bearer(token(sub))));

test('auth() of the SDK returns the user from the headers that the middleware passes to the route', async () => {
  const headers = await passed('user_1');
  expect(await service.auth(headers)).toMatchObject({ isAuthenticated: true, userId: 'user_1' });
  expect(await service.runRoute(headers)).toEqual({ status: 200, user: 'user_1' });
});

test.each([
  [
    'is the signature of another token',
    async () => (await passed('user_2')).get('x-clerk-auth-signature') ?? '',
  ],
  ['is forged', async () => 'a'.repeat(40)],
  ['is empty', async () => ''],
])(
  'auth() of the SDK rejects a session token if the header x-clerk-auth-signature %s',
  async (_name, forge) => {
    const headers = await passed('user_1');
    headers.set('x-clerk-auth-signature', await forge());
    await expect(service.auth(headers)).rejects.toThrow();
  },
);

test('A guarded route responds with 401 if the user in the header x-identity-link-user is not the user of the session token', async () => {
  const headers = await passed('user_1');
  headers.set('x-identity-link-user', 'user_2');
  expect(await service.runRoute(headers)).toEqual({ status: 401, reason: 'no-auth-state' });
});

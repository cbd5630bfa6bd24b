import { beforeAll, expect, test } from 'vitest';
import { bearer, HOOK, tokenFor } from '../harness/requests';
import { instance, KEYS, loadService, routeHeaders, type Service } from './service';

// tests/sdk/main.ts runs this file with a copy of the SDK in which the header x-clerk-auth-status has a different name. The
// service therefore finds no auth state (the result of the SDK's session check).

let service: Service;
beforeAll(async () => {
  service = await loadService({ ...KEYS.test, IDP_JWT_KEY: instance.signingKey.publicKeyPem });
});

test.each([HOOK, '/health/alive', '/health/ready'])(
  'A request to %s passes the middleware if the SDK supplies no auth state',
  async (path) => {
    const response = await service.pass(path);
    expect(response.status).toBe(200);
    expect(response.headers.get('x-middleware-next')).toBe('1');
    expect(routeHeaders(response).get('x-clerk-auth-status')).toBeNull();
  },
);

test('If the SDK supplies no auth state, API requests with and without a session token fail in the middleware', async () => {
  const headers = bearer(tokenFor(instance, 'user_1'));
  await expect(service.pass('/users/v1/me', headers)).rejects.toThrow('The SDK supplied no auth state');
  await expect(service.pass('/users/v1/me')).rejects.toThrow('The SDK supplied no auth state');
});

import { expect, test } from 'vitest';
import { register, send, tokenFor } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

// tests/unit/body.test.ts checks which bodies are valid, and tests/service/openapi.test.ts each documented response.

const service = sharedService();
const { idsOf } = service.database;
const token = tokenFor(service.idp, 'user_caller');

const submit = (body: unknown) => register(service.url, token, body);

test('The register route responds 200 to a caller that registers its own id, because the guard of the route has already registered the caller', async () => {
  const self = await register(service.url, tokenFor(service.idp, 'user_self'), {
    identityProviderUserId: 'user_self',
  });
  expect(self.status).toBe(200);
  expect(await idsOf('user_self')).toEqual([Object(self.body).userId]);
});

test('A rejected request keeps a valid request id of the caller in the response and in the log', async () => {
  const encoded = await send(`${service.url}/auth/v1/registe%72`, {
    headers: { 'x-request-id': 'trace-2' },
  });
  expect(encoded.headers.get('x-request-id')).toBe('trace-2');
  const line = '"requestId":"trace-2","route":"none","status":404';
  await expect.poll(() => service.linesWith(line)).toHaveLength(1);
});

test.each([
  ['white space at both ends', ' user '],
  ['255 characters of two UTF-16 units each', '😀'.repeat(255)],
])('The database stores an id unchanged: %s', async (_what, identityProviderUserId) => {
  const { status, body } = await submit({ identityProviderUserId });
  expect(status).toBe(201);
  expect(body).toMatchObject({ identityProviderUserId });
  expect(await idsOf(identityProviderUserId)).toEqual([Object(body).userId]);
});

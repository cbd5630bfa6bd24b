import { expect, test } from 'vitest';
import { register, send, tokenFor } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

// tests/unit/body.test.ts checks which bodies are valid.

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

test('The database stores an id of 255 characters with white space at both ends unchanged', async () => {
  const identityProviderUserId = ` ${'😀'.repeat(253)} `;
  const { status, body } = await submit({ identityProviderUserId });
  expect(status).toBe(201);
  expect(body).toMatchObject({ identityProviderUserId });
  expect(await idsOf(identityProviderUserId)).toEqual([Object(body).userId]);
});

test('The register route responds 409 to the id of a forgotten user', async () => {
  await service.database.markForgotten('user_forgotten');
  const forgotten = await submit({ identityProviderUserId: 'user_forgotten' });
  expect(forgotten).toMatchObject({ status: 409, body: { message: 'User is forgotten' } });
});

import { createClerkClient } from '@clerk/backend';
import { afterEach, expect, test } from 'vitest';
import { developmentBrowser } from './helpers/development-browser';
import { SECRET_KEY, startProvider } from './helpers/emulator';
import { stopAfterAll } from './helpers/stop';

const provider = stopAfterAll(await startProvider());
const { users } = createClerkClient({
  secretKey: SECRET_KEY,
  apiUrl: provider.url,
  telemetry: { disabled: true },
});
const errorOf = (promise: Promise<unknown>) => promise.catch((error: unknown) => error);
afterEach(() => provider.failures.clear());

test('A failure applies to the given number of calls of its operation, which change no data, and to no other operation', async () => {
  const { id } = provider.createUser({ email: 'status@example.com' });
  provider.failures.add({ operation: 'DELETE /v1/users/:id', status: 503, calls: 2 });
  expect(await users.getCount()).toBe(1);
  for (let call = 0; call < 2; call += 1) {
    expect(await errorOf(users.deleteUser(id))).toMatchObject({
      status: 503,
      errors: [{ code: 'internal_clerk_error' }],
    });
  }
  expect(await users.deleteUser(id)).toMatchObject({ id });
});

test('Failures of one operation apply in the order in which they were added. A 429 has a Retry-After header', async () => {
  for (const status of [429, 503]) provider.failures.add({ operation: 'GET /v1/users/count', status });
  expect(await errorOf(users.getCount())).toMatchObject({ status: 429, retryAfter: 1 });
  expect(await errorOf(users.getCount())).toMatchObject({ status: 503 });
  expect(provider.failures.list()).toEqual([]);
});

test('A failure of a DELETE operation applies to a call that clerk-js sends as a POST, and a page of another local origin can read it', async () => {
  const { call } = await developmentBrowser(provider);
  provider.failures.add({ operation: 'DELETE /v1/client/sessions', status: 502 });
  const origin = 'http://localhost:3000';
  const failed = await call('DELETE', '/v1/client/sessions', {}, { origin });
  expect([failed.status, failed.headers.get('access-control-allow-origin')]).toEqual([502, origin]);
  expect((await call('DELETE', '/v1/client/sessions')).status).toBe(200);
});

test('failures.add() throws for an unknown operation, for a status of a success and for a number of calls below 1', () => {
  const operation = 'GET /v1/users';
  const add = (failure: Parameters<typeof provider.failures.add>[0]) => () => provider.failures.add(failure);
  expect(add({ operation: 'GET /v1/none', status: 500 })).toThrow('no such operation');
  expect(add({ operation, status: 200 })).toThrow('>=400');
  expect(add({ operation, status: 500, calls: 0 })).toThrow('>=1');
  expect(provider.failures.list()).toEqual([]);
});

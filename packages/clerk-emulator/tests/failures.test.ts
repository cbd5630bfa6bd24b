import { afterEach, expect, test } from 'vitest';
import { developmentBrowser } from './helpers/development-browser';
import { clerkFor, startProvider } from './helpers/emulator';
import { errorOf } from './helpers/requests';
import { stopAfterAll } from './helpers/stop';

const provider = stopAfterAll(await startProvider());
const { users } = clerkFor(provider);
afterEach(() => provider.failures.clear());

test('A failure applies to the given number of calls of its operation, which change no data', async () => {
  const { id } = provider.createUser({ email: 'status@example.com' });
  provider.failures.add({ operation: 'DELETE /v1/users/:id', status: 503, calls: 2 });
  expect(await users.getCount()).toBe(1);
  for (let call = 0; call < 2; call += 1) {
    expect(await errorOf(users.deleteUser(id))).toMatchObject({ status: 503, code: 'internal_clerk_error' });
  }
  expect(await users.deleteUser(id)).toMatchObject({ id });
});

test('Failures of an operation apply in the order of their addition, and a 429 has a Retry-After header', async () => {
  for (const status of [429, 503]) provider.failures.add({ operation: 'GET /v1/users/count', status });
  expect(await errorOf(users.getCount())).toMatchObject({ status: 429, retryAfter: 1 });
  expect(await errorOf(users.getCount())).toMatchObject({ status: 503 });
  expect(provider.failures.list()).toEqual([]);
});

test('A page of another local origin can read the failure of a DELETE that clerk-js sends as a POST', async () => {
  const { call } = await developmentBrowser(provider);
  provider.failures.add({ operation: 'DELETE /v1/client/sessions', status: 502 });
  const origin = 'http://localhost:3000';
  const failed = await call('DELETE', '/v1/client/sessions', {}, { origin });
  expect([failed.status, failed.headers.get('access-control-allow-origin')]).toEqual([502, origin]);
  expect((await call('DELETE', '/v1/client/sessions')).status).toBe(200);
});

test('A failure with an unknown operation, a status of a success or no calls is rejected', () => {
  const operation = 'GET /v1/users';
  const add = (failure: Parameters<typeof provider.failures.add>[0]) => () => provider.failures.add(failure);
  expect(add({ operation: 'GET /v1/none', status: 500 })).toThrow('no such operation');
  expect(add({ operation, status: 200 })).toThrow('>=400');
  expect(add({ operation, status: 500, calls: 0 })).toThrow('>=1');
  expect(provider.failures.list()).toEqual([]);
});

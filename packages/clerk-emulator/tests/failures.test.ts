import { createClerkClient } from '@clerk/backend';
import { afterEach, expect, test } from 'vitest';
import type { SentResponse } from '../src/observe';
import { manualClock } from '../src/testing/manual-clock';
import { developmentBrowser } from './helpers/development-browser';
import { SECRET_KEY, startProvider } from './helpers/emulator';
import { stopAfterAll, stopAfterTest } from './helpers/stop';

const responses: SentResponse[] = [];
const provider = stopAfterAll(await startProvider({ onResponse: (response) => responses.push(response) }));
const backend = ({ url: apiUrl } = provider) =>
  createClerkClient({ secretKey: SECRET_KEY, apiUrl, telemetry: { disabled: true } });
const { users } = backend();
const errorOf = (promise: Promise<unknown>) => promise.catch((error: unknown) => error);
afterEach(() => provider.failures.remove());

// A failure makes the next calls of one operation of the emulator fail or wait.

test('A failure with a status applies to the given number of calls of its operation, and to no other operation', async () => {
  const { id } = provider.createUser({ email: 'status@example.com' });
  provider.failures.add({ operation: 'GET /v1/users/:id', status: 503, calls: 2 });
  expect(await users.getCount()).toBe(1);
  for (let call = 0; call < 2; call += 1) {
    expect(await errorOf(users.getUser(id))).toMatchObject({
      status: 503,
      errors: [{ code: 'internal_clerk_error' }],
    });
  }
  expect(await users.getUser(id)).toMatchObject({ id });
});

test('A call that fails does not change the data of the emulator', async () => {
  const { id } = provider.createUser({ email: 'kept@example.com' });
  provider.failures.add({ operation: 'DELETE /v1/users/:id', status: 500 });
  provider.failures.add({ operation: 'DELETE /v1/users/:id', disconnect: true });
  for (let call = 0; call < 2; call += 1) expect(await errorOf(users.deleteUser(id))).toBeInstanceOf(Error);
  expect(provider.store.users.get(id)).toBeDefined();
});

test('A failure with the status 429 has a Retry-After header, which the Backend SDK reads', async () => {
  provider.failures.add({ operation: 'GET /v1/users/count', status: 429 });
  const error = await errorOf(users.getCount());
  expect(error).toMatchObject({ status: 429, retryAfter: 1, errors: [{ code: 'too_many_requests' }] });
});

test('A failure with disconnect closes the connection of the failing call, and the option onResponse does not report the call', async () => {
  responses.length = 0;
  const url = `${provider.url}/v1/environment`;
  provider.failures.add({ operation: 'GET /v1/environment', disconnect: true });
  await expect(fetch(url)).rejects.toMatchObject({ cause: { code: 'UND_ERR_SOCKET' } });
  expect((await fetch(url)).status).toBe(200);
  expect(responses.map(({ status }) => status)).toEqual([200]);
});

test('A failure with only a delay makes the call wait for this time on the clock of the emulator', async () => {
  const clock = manualClock();
  const slow = stopAfterTest(await startProvider({ clock }));
  slow.failures.add({ operation: 'GET /v1/users/count', delayMilliseconds: 30_000 });
  const count = backend(slow).users.getCount();
  await expect.poll(() => slow.failures.list()).toEqual([]);
  expect(await Promise.race([count, 'waiting'])).toBe('waiting');
  expect(clock.advance()).toBe(30_000);
  expect(await count).toBe(0);
});

test('A failure of a DELETE operation applies to a call that clerk-js sends as a POST', async () => {
  const { call } = await developmentBrowser(provider);
  provider.failures.add({ operation: 'DELETE /v1/client/sessions', status: 502 });
  expect((await call('DELETE', '/v1/client/sessions')).status).toBe(502);
  expect((await call('DELETE', '/v1/client/sessions')).status).toBe(200);
});

test('A browser page of another local origin can read the status of a failed call', async () => {
  provider.failures.add({ operation: 'GET /v1/client', status: 500 });
  const origin = 'http://localhost:3000';
  const { headers, status } = await fetch(`${provider.url}/v1/client`, { headers: { origin } });
  expect([status, headers.get('access-control-allow-origin')]).toEqual([500, origin]);
});

test('The failures of one operation apply in the order in which they were added, and a removed failure does not apply', async () => {
  const add = (status: number) => provider.failures.add({ operation: 'GET /v1/users/count', status });
  const [, removed] = [add(501), add(502), add(503)];
  provider.failures.remove(removed?.id);
  expect(provider.failures.list().map(({ status, calls }) => [status, calls])).toEqual([
    [501, 1],
    [503, 1],
  ]);
  expect(await errorOf(users.getCount())).toMatchObject({ status: 501 });
  expect(await errorOf(users.getCount())).toMatchObject({ status: 503 });
  expect(provider.failures.list()).toEqual([]);
});

test.each([
  [{ operation: 'GET /v1/none', status: 500 }, 'no such operation'],
  [{ operation: 'GET /v1/users' }, 'needs a status'],
  [{ operation: 'GET /v1/users', status: 200 }, '>=400'],
  [{ operation: 'GET /v1/users', status: 500, calls: 0 }, '>=1'],
  [{ operation: 'GET /v1/users', status: 500, disconnect: true as const }, 'both a status and disconnect'],
])('failures.add() throws for the invalid failure %j', (failure, message) => {
  expect(() => provider.failures.add(failure)).toThrow(message);
  expect(provider.failures.list()).toEqual([]);
});

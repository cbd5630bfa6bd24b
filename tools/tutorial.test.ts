import { expect, test } from 'vitest';
import { build, copyPackages, start, tutorial } from '../bench/servers';
import { deliver, ME, me, signatureHeaders, tokenFor, userCreated } from '../tests/harness/requests';
import { startDependencies } from '../tests/harness/service';
import { stopAfterAll } from '../tests/vitest/stop-after-all';

// What breaks in the application that a tutorial would make (docs/why-not-by-hand.md).

const dependencies = stopAfterAll(await startDependencies({ keys: 'live' }));
const { database, idp, kv } = dependencies;
copyPackages();
const application = tutorial(dependencies);
await build(application);
const request = { method: 'GET', path: ME, headers: {}, status: 401 } as const;
const { url } = stopAfterAll(await start(application, request));

const call = (user: string, claims = {}) => me(url, tokenFor(idp, user, claims));
/** Returns the status of a response, or `none` if there is no response within 30 s. */
const statusOf = (response: ReturnType<typeof me>) =>
  response.then(({ status }) => status).catch(() => 'none');

test('Some of 40 first requests of one user get a 500', async () => {
  const statuses = await Promise.all(Array.from({ length: 40 }, () => statusOf(call('user_new'))));
  expect(new Set(statuses)).toEqual(new Set([200, 500]));
});

test.each([
  ['accepts a token that is no session', 200, () => call('user_a', { sid: undefined })],
  ['accepts a token of another frontend', 200, () => call('user_b', { azp: 'https://blog.example.com' })],
  ['links an empty id', 200, () => deliver(url, userCreated(''))],
  ['fails for a signed event that is not JSON', 500, () => deliver(url, 'x')],
  ['reads a forged event of 30 MB', 400, () => deliver(url, 'x'.repeat(30_000_000), signatureHeaders(''))],
])('The application of a tutorial %s: %s', async (_case, status, send) => {
  expect(await statusOf(send())).toBe(status);
});

test('A deleted user keeps the cached id, and a late event links the user again', async () => {
  await call('user_deleted');
  await database.pool.query("DELETE FROM users WHERE identity_provider_user_id = 'user_deleted'");
  expect(await statusOf(call('user_deleted'))).toBe(200);
  expect(await statusOf(deliver(url, userCreated('user_deleted')))).toBe(200);
  expect(await database.idsOf('user_deleted')).toHaveLength(1);
});

test('Without the cache or the database, a request fails or gets no response', async () => {
  await kv.proxy.treat('refuse');
  expect(await statusOf(call('user_a'))).toBe(500);
  await kv.proxy.treat('black-hole');
  expect(await statusOf(call('user_a'))).toBe('none');
  await kv.proxy.treat('forward');
  await database.proxy.treat('black-hole');
  expect(await statusOf(deliver(url, userCreated('user_c')))).toBe('none');
});

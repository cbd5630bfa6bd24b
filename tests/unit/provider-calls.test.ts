import { createClerkClient } from '@clerk/backend';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { TransientError } from '#lib/concurrency/retry';
import { parseEnvironment, setEnvironment } from '#lib/env';
import { foreignParty, isForeignParty, namesForeignParty } from '#lib/idp/authorized-party';
import { countUsers, listUsers, listUsersById, listUsersWithExternalId } from '#lib/idp/backend-api';
import { browserSettings, mailsOnConsole } from '#lib/idp/browser-settings';
import { BUILD_TIME_VALUES } from '../harness/build';

beforeEach(() => {
  for (const [name, value] of Object.entries(BUILD_TIME_VALUES)) vi.stubEnv(name, value);
});

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** Makes every request to the identity provider return this JSON body and status. */
const respond = (body: unknown, status = 200) =>
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json(body, { status }));

test('If the identity provider responds with 401, the error says that the provider rejects the secret key', async () => {
  respond({ errors: [{ code: 'clerk_key_invalid' }] }, 401);
  await expect(countUsers()).rejects.toThrow('The identity provider rejects IDP_SECRET_KEY');
});

// The callers of lib/idp/backend-api.ts retry a call that rejects with a TransientError. Any other error is final.
test.each([
  [{ errors: [{ code: 'feature_not_enabled' }] }, ' (feature_not_enabled)'],
  [{ errors: [{ code: 'not a code, but text' }] }, ''],
  ['<html>', ''],
])(
  'If the identity provider responds with 403, the error is final and contains the status and any valid error code of the body: %j',
  async (body, code) => {
    respond(body, 403);
    const error = await countUsers().catch((thrown: unknown) => thrown);
    expect(error).not.toBeInstanceOf(TransientError);
    expect(error).toEqual(new Error(`The identity provider forbids this request with status 403${code}`));
  },
);

/** Makes every request to the provider return the result of `response`. Returns a function that lists the requests so far. */
function respondWith(response: () => Response | Promise<Response>) {
  const fetching = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => response());
  return () => fetching.mock.calls.map(([url, init]) => ({ url: String(url), init }));
}
const errorOf = (call: Promise<unknown>) => call.catch((error: unknown) => error);
const users = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    id: `user_${index}`,
    created_at: index,
    email: 'a@b.example',
  }));

test('A call of the Backend API sends the secret key and the API version, and does not follow redirects', async () => {
  const requests = respondWith(() => Response.json({ total_count: 7 }));
  expect(await countUsers()).toBe(7);
  expect(requests()).toEqual([
    {
      url: 'https://api.clerk.com/v1/users/count?',
      init: {
        headers: {
          authorization: `Bearer ${BUILD_TIME_VALUES.IDP_SECRET_KEY}`,
          'clerk-api-version': '2026-05-12',
        },
        redirect: 'error',
        signal: expect.any(AbortSignal),
      },
    },
  ]);
});

test('A call of the Backend API requests the same API version as the SDK', async () => {
  const fetched = respond({ total_count: 7 });
  await countUsers();
  await createClerkClient({ secretKey: BUILD_TIME_VALUES.IDP_SECRET_KEY }).users.getCount();
  const versions = fetched.mock.calls.map(([, init]) => new Headers(init?.headers).get('clerk-api-version'));
  expect(versions[0]).toMatch(/^\d{4}-\d{2}-\d{2}$/);
  expect(versions[1]).toBe(versions[0]);
});

test('CLERK_API_URL, which the local stack sets, replaces the address of the Backend API', async () => {
  vi.stubEnv('CLERK_API_URL', 'http://127.0.0.1:4000/');
  const requests = respondWith(() => Response.json({ total_count: 7 }));
  await countUsers();
  expect(requests()[0]?.url).toBe('http://127.0.0.1:4000/v1/users/count?');
});

test.each<[string, () => Response | Promise<Response>, string, number | undefined]>([
  ['no response', () => Promise.reject(new TypeError('failed')), 'does not respond', undefined],
  [
    'an incomplete body',
    () => new Response(new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) })),
    'does not respond',
    undefined,
  ],
  ['status 500', () => new Response('', { status: 500 }), 'responds with status 500', undefined],
  ['status 503', () => new Response('', { status: 503 }), 'responds with status 503', undefined],
  ['status 408', () => new Response('', { status: 408 }), 'responds with status 408', undefined],
  [
    'status 429 without Retry-After',
    () => new Response('', { status: 429 }),
    'limits the rate of requests',
    10,
  ],
  [
    'status 429 with a number of seconds in Retry-After',
    () => new Response('', { status: 429, headers: { 'retry-after': '3' } }),
    'limits the rate of requests',
    3,
  ],
  [
    'status 429 with a Retry-After that is not a number',
    () => new Response('', { status: 429, headers: { 'retry-after': 'Fri' } }),
    'limits the rate of requests',
    10,
  ],
])(
  'A call of the Backend API rejects with a TransientError, so that callers retry the call: %s',
  async (_what, response, message, retryAfterSeconds) => {
    respondWith(response);
    const error = await errorOf(countUsers());
    expect(error).toBeInstanceOf(TransientError);
    expect(error).toMatchObject({ message: `the identity provider ${message}`, retryAfterSeconds });
  },
);

test.each([
  [404, { errors: [{ code: 'resource_not_found' }] }, 'responds with status 404 (resource_not_found)'],
  [422, { errors: [] }, 'responds with status 422'],
  [201, { total_count: 7 }, 'responds with status 201'],
  [200, { total_count: '7' }, 'returns an unexpected response'],
])(
  'A call of the Backend API rejects with a final error if the response has the status %i and the body %j',
  async (status, body, message) => {
    respond(body, status);
    const error = await errorOf(countUsers());
    expect(error).not.toBeInstanceOf(TransientError);
    expect(error).toEqual(new Error(`The identity provider ${message}`));
  },
);

test('listUsers() requests users in the order of their creation times, and returns only their ids and creation times', async () => {
  const requests = respondWith(() => Response.json(users(2)));
  expect(await listUsers({ offset: 0, limit: 500 })).toEqual([
    { id: 'user_0', createdAt: 0 },
    { id: 'user_1', createdAt: 1 },
  ]);
  await listUsers({ offset: 7, limit: 2, createdAfter: 0 });
  expect(requests().map(({ url }) => url)).toEqual([
    'https://api.clerk.com/v1/users?order_by=%2Bcreated_at&limit=500',
    'https://api.clerk.com/v1/users?order_by=%2Bcreated_at&limit=2&offset=7&created_at_after=0',
  ]);
});

test('listUsersWithExternalId() requests the same users as listUsers(), and returns their external ids too', async () => {
  const requests = respondWith(() => Response.json([{ ...users(1)[0], external_id: 'a' }]));
  expect(await listUsersWithExternalId({ offset: 0, limit: 500 })).toMatchObject([
    { id: 'user_0', externalId: 'a' },
  ]);
  expect(requests().map(({ url }) => url)).toEqual([
    'https://api.clerk.com/v1/users?order_by=%2Bcreated_at&limit=500',
  ]);
});

test('listUsersById() requests up to 100 users at a time. It adds a plus before each id, because the provider excludes a user if the id in the query starts with a minus', async () => {
  const requests = respondWith(() => Response.json(users(1)));
  expect(await listUsersById([])).toEqual([]);
  expect(requests()).toEqual([]);
  expect(await listUsersById(['-user_1', 'b'])).toEqual([{ id: 'user_0', createdAt: 0 }]);
  expect(requests().map(({ url }) => url)).toEqual([
    'https://api.clerk.com/v1/users?limit=100&user_id=%2B-user_1&user_id=%2Bb',
  ]);
  await listUsersById(Array.from({ length: 100 }, (_, index) => `user_${index}`));
  expect(requests()).toHaveLength(2);
  expect(await listUsersById(Array.from({ length: 101 }, (_, index) => `user_${index}`))).toHaveLength(2);
  const idsOf = (url = '') => new URL(url).searchParams.getAll('user_id');
  expect(
    requests()
      .slice(2)
      .map(({ url }) => idsOf(url).length),
  ).toEqual([51, 50]);
});

test('listUsersById() sends long ids in several requests, because servers limit the length of a URL', async () => {
  const requests = respondWith(() => Response.json(users(1)));
  const ids = Array.from({ length: 40 }, (_, index) => `${index}`.padEnd(255, 'x'));
  await listUsersById(ids);
  const sent = requests().flatMap(({ url }) => new URL(url).searchParams.getAll('user_id'));
  expect(sent).toEqual(ids.map((id) => `+${id}`));
  expect(Math.max(...requests().map(({ url }) => new URL(url).search.length))).toBeLessThan(6_002);
  expect(requests()).toHaveLength(2);
  await listUsersById(['x'.repeat(7_000)]);
  expect(requests()).toHaveLength(3);
  const parameters = 'limit=100&user_id=%2B&user_id=%2B';
  await listUsersById(['x', 'y'.repeat(6_000 - parameters.length - 1)]);
  expect(requests()).toHaveLength(4);
});

test('browserSettings() returns the proxy URL /__clerk and mailsOnConsole() returns IDP_CONSOLE_URL only if CLERK_FAPI_URL is set', () => {
  const key = BUILD_TIME_VALUES.IDP_PUBLISHABLE_KEY;
  setEnvironment(parseEnvironment({ ...BUILD_TIME_VALUES, IDP_CONSOLE_URL: 'http://127.0.0.1:3900' }));
  expect([browserSettings(), mailsOnConsole()]).toEqual([{ publishableKey: key }, undefined]);
  const local = { CLERK_FAPI_URL: 'http://127.0.0.1:4001', IDP_CONSOLE_URL: 'http://127.0.0.1:3900' };
  setEnvironment(parseEnvironment({ ...BUILD_TIME_VALUES, ...local }));
  expect([browserSettings(), mailsOnConsole()]).toEqual([
    { publishableKey: key, proxyUrl: '/__clerk' },
    'http://127.0.0.1:3900',
  ]);
  setEnvironment(undefined);
});

test('A `fetch` call to the Backend API with a string URL and without a signal gets a timeout. All other calls are unchanged', async () => {
  const send = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response());
  const { fetch: given } = globalThis;
  vi.resetModules();
  await import('#lib/idp/backend-api-timeout');
  const { signal } = new AbortController();
  await fetch('https://api.clerk.com/v1/users');
  await fetch('https://api.clerk.com/v1/users', { signal, method: 'POST' });
  await fetch('https://api.clerk.com.example/v1/users');
  await fetch(new URL('https://api.clerk.com/v1/users'), { method: 'PUT' });
  vi.stubEnv('CLERK_API_URL', 'http://127.0.0.1:4000/');
  await fetch('http://127.0.0.1:4000/v1/users', { method: 'PATCH' });
  globalThis.fetch = given;
  expect(send.mock.calls.map(([, init]) => init)).toEqual([
    { signal: expect.any(AbortSignal) },
    { signal, method: 'POST' },
    undefined,
    { method: 'PUT' },
    { method: 'PATCH', signal: expect.any(AbortSignal) },
  ]);
});

test('If IDP_SECRET_KEY or IDP_PUBLISHABLE_KEY is not blank, it replaces the corresponding variable of the SDK. The automatic proxy and the telemetry of the SDK are always off', async () => {
  const names = ['CLERK_SECRET_KEY', 'NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY'];
  for (const name of [...names, 'CLERK_DISABLE_AUTO_PROXY', 'NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED'])
    vi.stubEnv(name, 'old');
  vi.stubEnv('IDP_SECRET_KEY', ' sk_test_new ');
  vi.stubEnv('IDP_PUBLISHABLE_KEY', ' ');
  vi.resetModules();
  await import('#lib/idp/sdk-environment');
  expect(names.map((name) => process.env[name])).toEqual(['sk_test_new', 'old']);
  expect([
    process.env['CLERK_DISABLE_AUTO_PROXY'],
    process.env['NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED'],
  ]).toEqual(['1', '1']);
  vi.stubEnv('IDP_PUBLISHABLE_KEY', 'pk_test_new');
  vi.stubEnv('IDP_SECRET_KEY', undefined);
  vi.resetModules();
  await import('#lib/idp/sdk-environment');
  expect(names.map((name) => process.env[name])).toEqual(['sk_test_new', 'pk_test_new']);
});

test('namesForeignParty() returns true only for an origin that the list of authorized parties does not contain. isForeignParty() returns true only for a response of foreignParty()', () => {
  const own = ['https://app.example', 'https://www.example'];
  expect(namesForeignParty('https://www.example', own)).toBe(false);
  expect(namesForeignParty('https://evil.example', own)).toBe(true);
  expect(namesForeignParty('https://evil.example', undefined)).toBe(false);
  expect(namesForeignParty(undefined, own)).toBe(false);
  expect([isForeignParty(foreignParty()), isForeignParty(new Response())]).toEqual([true, false]);
});

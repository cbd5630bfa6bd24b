import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { setEnvironment } from '#lib/base/env';
import { TransientError } from '#lib/base/errors';
import { listById, listPage } from '#lib/clerk/backend-api';
import { browserSettings, mailsOnConsole } from '#lib/clerk/browser-settings';
import { BUILD_TIME_VALUES } from '../harness/build';

beforeEach(() => {
  for (const [name, value] of Object.entries(BUILD_TIME_VALUES)) vi.stubEnv(name, value);
});

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** Makes every request to the provider return the result of `response`. Returns a function that lists the requests so far. */
function respondWith(response: () => Response | Promise<Response>) {
  const fetching = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => response());
  return () => fetching.mock.calls.map(([url, init]) => ({ url: new URL(String(url)), init: init ?? {} }));
}
const errorOf = (call: Promise<unknown>) => call.catch((error: unknown) => error);
const apiUser = { object: 'user', id: 'user_0', created_at: 7, external_id: 'a', first_name: 'Private' };
const organizations = { data: [{ ...apiUser, object: 'organization' }], total_count: 1 };
const PAGE = { offset: 0, limit: 500 };

// The callers of lib/clerk/backend-api.ts retry a call that rejects with a TransientError. Any other error is final.
const transient = (reason: string, seconds?: number) =>
  new TransientError(`the identity provider ${reason}`, seconds);
const final = (reason: string) => new Error(`The identity provider ${reason}`);
const coded = (code: string) => ({ errors: [{ code }] });

test.each<[status: number | undefined, body: object, headers: Record<string, string>, error: Error]>([
  [undefined, {}, {}, transient('does not respond')],
  [503, {}, {}, transient('responds with status 503')],
  [408, {}, {}, transient('responds with status 408')],
  [429, {}, {}, transient('limits the rate of requests', 10)],
  [429, {}, { 'retry-after': '3' }, transient('limits the rate of requests', 3)],
  [401, coded('x'), {}, final('rejects IDP_SECRET_KEY')],
  [403, coded('not_enabled'), {}, final('responds with status 403 (not_enabled)')],
  [404, coded('not a code, but text'), {}, final('responds with status 404')],
  [200, {}, {}, final('returns an unexpected response')],
])(
  'A call of the Backend API rejects if the response has the status %s, the body %j and the headers %j',
  async (status, body, headers, error) => {
    respondWith(() =>
      status === undefined ? Promise.reject(new TypeError()) : Response.json(body, { status, headers }),
    );
    expect(await errorOf(listPage('user', PAGE))).toStrictEqual(error);
  },
);

test('A call of the Backend API rejects after 20 s without a response', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  respondWith(() => new Promise(() => {}));
  const call = errorOf(listPage('user', PAGE));
  await vi.advanceTimersByTimeAsync(20_000);
  expect(await call).toStrictEqual(new TransientError('the identity provider does not respond'));
});

test('The users are requested in the order of their creation from the address in CLERK_API_URL, and their JSON is returned', async () => {
  const requests = respondWith(() => Response.json([apiUser]));
  expect(await listPage('user', PAGE)).toEqual([
    { id: 'user_0', createdAt: 7, externalId: 'a', raw: apiUser },
  ]);
  vi.stubEnv('CLERK_API_URL', 'http://127.0.0.1:4000/');
  await listPage('user', { offset: 7, limit: 2, createdAfter: 1_000 });
  const lists = requests().filter(({ url }) => url.pathname === '/v1/users');
  expect(lists.map(({ url }) => url.href)).toEqual([
    'https://api.clerk.com/v1/users?order_by=%2Bcreated_at&limit=500',
    'http://127.0.0.1:4000/v1/users?order_by=%2Bcreated_at&limit=2&offset=7&created_at_after=1000',
  ]);
  expect(new Headers(lists[0]?.init.headers).get('authorization')).toBe(
    `Bearer ${BUILD_TIME_VALUES.IDP_SECRET_KEY}`,
  );
});

test.each([
  ['user', '/v1/users', 'user_id', [apiUser]],
  ['tenant', '/v1/organizations', 'organization_id', organizations],
] as const)(
  'Entries of the kind "%s" are requested in the order of their creation or by id, up to 100 at a time or fewer if the ids are long, with a plus before each id',
  async (kind, path, parameter, list) => {
    const requests = respondWith(() => Response.json(list));
    expect([await listPage(kind, PAGE), await listById(kind, [])]).toMatchObject([[{ id: 'user_0' }], []]);
    const numbers = Array.from({ length: 101 }, (_, index) => `-id_${index}`);
    expect(await listById(kind, numbers)).toHaveLength(2);
    const long = Array.from({ length: 40 }, (_, index) => `${index}`.padEnd(255, 'x'));
    await listById(kind, long);
    const [page, ...lists] = requests().filter(({ url }) => url.pathname === path);
    expect(page?.url.search).toBe('?order_by=%2Bcreated_at&limit=500');
    const ids = lists.map(({ url }) => url.searchParams.getAll(parameter));
    expect(ids.map(({ length }) => length)).toEqual([51, 50, 20, 20]);
    expect(ids.flat()).toEqual([...numbers, ...long].map((id) => `+${id}`));
  },
);

test('The browser uses the proxy /__clerk and the console in IDP_CONSOLE_URL only if CLERK_FAPI_URL is set', () => {
  const key = BUILD_TIME_VALUES.IDP_PUBLISHABLE_KEY;
  setEnvironment({ ...BUILD_TIME_VALUES, IDP_CONSOLE_URL: 'http://127.0.0.1:3900' });
  expect([browserSettings(), mailsOnConsole()]).toEqual([{ publishableKey: key }, undefined]);
  const local = { CLERK_FAPI_URL: 'http://127.0.0.1:4001', IDP_CONSOLE_URL: 'http://127.0.0.1:3900' };
  setEnvironment({ ...BUILD_TIME_VALUES, ...local });
  expect([browserSettings(), mailsOnConsole()]).toEqual([
    { publishableKey: key, proxyUrl: '/__clerk' },
    'http://127.0.0.1:3900',
  ]);
  setEnvironment();
});

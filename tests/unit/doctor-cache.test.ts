import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { checkCache } from '#lib/doctor/cache';

// The doctor is the command that checks the configuration of a deployment (`npm run doctor`). tests/service/doctor.test.ts
// runs these checks with a real KV server.

const { store, commands } = vi.hoisted(() => ({
  store: {
    ping: async (): Promise<unknown> => 'PONG',
    set: async (_key: string, _value: unknown, _options: object): Promise<unknown> => 'OK',
    get: async (_key: string): Promise<unknown> => null,
    del: async (_key: string): Promise<unknown> => 1,
  },
  commands: Array.of<unknown[]>(),
}));
/** A KV client that records its commands and runs the functions of `store`. */
const kv = Object.fromEntries(
  (['ping', 'set', 'get', 'del'] as const).map((name) => [
    name,
    async (...args: unknown[]) => {
      commands.push([name, ...args]);
      return Reflect.apply(store[name], undefined, args);
    },
  ]),
);
vi.mock('#lib/storage/kv', () => ({ withKv: (command: (client: object) => unknown) => command(kv) }));
// The replaced `setTimeout` does not wait. It advances the fake clock.
vi.mock('node:timers/promises', async (original) => ({
  ...(await original<typeof import('node:timers/promises')>()),
  setTimeout: async (milliseconds: number) => vi.advanceTimersByTime(milliseconds),
}));

const entries = new Map<string, unknown>();
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  vi.stubEnv('KV_REST_API_URL', 'https://kv.example');
  vi.stubEnv('KV_REST_API_TOKEN', 'token');
  entries.clear();
  commands.length = 0;
  Object.assign(store, {
    ping: async () => 'PONG',
    set: async (key: string, value: unknown) => void entries.set(key, value),
    get: async (key: string) => entries.get(key),
    del: async (key: string) => entries.delete(key),
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

const failWith = (error: unknown) => async () => {
  throw error;
};
const ok = (name: string, message: string) => ({ name, status: 'ok', message });
const skipped = (name: string, message: string) => ({ name, status: 'skipped', message });
const byName = async (name: string) => (await checkCache()).find((result) => result.name === name);

test('The doctor pings the store, writes a key with an expiry, reads it and deletes it', async () => {
  store.ping = async () => vi.advanceTimersByTime(7);
  expect(await checkCache()).toEqual([
    ok('cache', 'responds'),
    ok('cache write', 'a written value can be read'),
    ok('cache latency', '7 ms per round trip from this machine, median of 5'),
    ok('cache transport', 'over TLS'),
  ]);
  const key = expect.stringMatching(/^auth:doctor:[0-9a-f-]{36}$/);
  const pings = Array.from({ length: 5 }, () => ['ping']);
  expect(commands).toEqual([
    ['ping'],
    ['set', key, expect.stringMatching(/^[0-9a-f-]{36}$/), { ex: 60 }],
    ['get', key],
    ['del', key],
    ...pings,
  ]);
});

test('The doctor skips the checks of the cache if the variables of the cache are invalid', async () => {
  vi.stubEnv('KV_REST_API_TOKEN', '');
  const message = 'KV_REST_API_URL or KV_REST_API_TOKEN is invalid';
  expect(await checkCache()).toEqual([
    skipped('cache', message),
    skipped('cache write', 'the first check of the cache did not succeed'),
    skipped('cache latency', 'the first check of the cache did not succeed'),
    skipped('cache transport', message),
  ]);
  expect(commands).toEqual([]);
});

test.each([
  ['http://127.0.0.1:3001', { status: 'ok', message: 'on this machine' }],
  [
    'http://kv.example',
    {
      status: 'warning',
      message: 'the token is sent unencrypted',
      remedy: 'Set KV_REST_API_URL to an https:// URL',
    },
  ],
])(
  'The doctor warns about a KV_REST_API_URL without TLS unless the store is on this machine: %s',
  async (url, result) => {
    vi.stubEnv('KV_REST_API_URL', url);
    expect(await byName('cache transport')).toEqual({ name: 'cache transport', ...result });
  },
);

const COPY_BOTH =
  'Copy both KV_REST_API_URL and KV_REST_API_TOKEN from the page of one store at its provider';
const LARGER_PLAN =
  'Choose a larger plan at the provider of the store. Until then, every request uses the database';
const QUOTA = "the quota of the store's plan is used up";
const upstash = (message: string) => Object.assign(new Error(message), { name: 'UpstashError' });
const coded = (code: string, message = 'hidden') => Object.assign(new Error(message), { code });
const errors: [error: unknown, message: string, remedy: string][] = [
  [upstash('ERR max requests limit exceeded. Limit: 500000'), QUOTA, LARGER_PLAN],
  [new Error('rejected', { cause: new Error('DB capacity Quota Exceeded') }), QUOTA, LARGER_PLAN],
  [
    upstash('LOADING hidden is loading'),
    'the store returns an error (LOADING)',
    "Look up the error on the store's page at its provider",
  ],
  [
    upstash('hidden LOADING'),
    'the store returns an error (without a code)',
    "Look up the error on the store's page at its provider",
  ],
  [coded('HTTP_401'), 'the store rejects KV_REST_API_TOKEN', COPY_BOTH],
  [coded('HTTP_403'), 'the store rejects KV_REST_API_TOKEN', COPY_BOTH],
  [
    new Error('KV store did not respond'),
    'the store does not respond within 500 ms, the timeout of a cache call in the service',
    'Choose a store in the region of the functions. Until then, every request uses the database',
  ],
  [
    coded('ENOTFOUND'),
    'the host of KV_REST_API_URL does not exist (ENOTFOUND)',
    'Correct KV_REST_API_URL. If the provider archived or deleted an unused store, create a new store and set KV_REST_API_URL and KV_REST_API_TOKEN',
  ],
  [
    coded('ECONN_RESET'),
    'cannot connect to the store (ECONN_RESET)',
    'Check that the store is running and that KV_REST_API_URL is its URL',
  ],
  // In all cases below, the response may come from a server that is not a KV store. The remedy therefore assumes that
  // KV_REST_API_URL is wrong.
  [coded('HTTP_500'), 'the store responds with status 500', COPY_BOTH],
  [coded('XHTTP_500'), 'the response at KV_REST_API_URL is not that of a KV store', COPY_BOTH],
  [coded('HTTP_500x'), 'the response at KV_REST_API_URL is not that of a KV store', COPY_BOTH],
  [coded('XENOENT'), 'the response at KV_REST_API_URL is not that of a KV store', COPY_BOTH],
  [coded('E2BIG'), 'the response at KV_REST_API_URL is not that of a KV store', COPY_BOTH],
  [coded('EPIPE2'), 'the response at KV_REST_API_URL is not that of a KV store', COPY_BOTH],
  [new SyntaxError('{"hidden"'), 'the response at KV_REST_API_URL is not that of a KV store', COPY_BOTH],
  ['hidden', 'the response at KV_REST_API_URL is not that of a KV store', COPY_BOTH],
];

test.each(errors)(
  'The doctor explains an error of the store without printing the text of the error: %s',
  async (error, message, remedy) => {
    store.ping = failWith(error);
    expect(await checkCache()).toEqual([
      { name: 'cache', status: 'failure', message, remedy },
      skipped('cache write', 'the first check of the cache did not succeed'),
      skipped('cache latency', 'the first check of the cache did not succeed'),
      ok('cache transport', 'over TLS'),
    ]);
    expect(commands).toEqual([['ping'], ['ping'], ['ping']]);
  },
);

test.each(['NOPERM this user has no permissions', 'READONLY replica', 'NOAUTH required'])(
  'The doctor recognizes a read-only token by the error of the write: %s',
  async (message) => {
    store.set = failWith(upstash(message));
    expect(await byName('cache write')).toEqual({
      name: 'cache write',
      status: 'failure',
      message: 'KV_REST_API_TOKEN is a read-only token',
      remedy: 'Set KV_REST_API_TOKEN to the token that has write access',
    });
  },
);

test('The doctor explains the errors of the write and of the latency check in the same way as an error of the first ping', async () => {
  let pings = 0;
  store.ping = async () => {
    pings += 1;
    if (pings > 1) throw coded('HTTP_500');
  };
  store.set = failWith(coded('HTTP_401'));
  store.del = failWith(coded('HTTP_401'));
  expect(await checkCache()).toMatchObject([
    { status: 'ok' },
    { status: 'failure', message: 'the store rejects KV_REST_API_TOKEN' },
    { status: 'failure', message: 'the store responds with status 500' },
    { status: 'ok' },
  ]);
});

test('The doctor warns if a written value cannot be read immediately, and reports a failure if the value cannot be read within 2 s', async () => {
  let reads = 0;
  store.get = async (key) => {
    reads += 1;
    return reads < 21 ? null : entries.get(key);
  };
  expect(await byName('cache write')).toEqual({
    name: 'cache write',
    status: 'warning',
    message: 'a written value cannot be read immediately: the store has read regions',
    remedy:
      'Remove the read regions if all functions run in one region. Otherwise accept that cached entries arrive late',
  });
  reads = -1;
  expect(await byName('cache write')).toEqual({
    name: 'cache write',
    status: 'failure',
    message: 'a written value cannot be read within 2 s',
    remedy: 'Use a store without read regions. If this store has no read regions, use a different store',
  });
  expect(reads).toBe(20);
  expect(entries.size).toBe(0);
});

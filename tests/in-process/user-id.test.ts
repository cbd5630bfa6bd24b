import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { signVerdict, VERDICT } from '#lib/idp/verdict';
import type { Telemetry } from '#lib/telemetry/port';
import { CommandError } from '../../dev/kv/memory';
import { allowInserts, DISK_FULL, failInserts, importAsProcess, startInProcess } from '../harness/in-process';

const { database, kv } = await startInProcess();

/** A UUID v7 that no row has. */
const OTHER_ID = '019a0000-0000-7000-8000-000000000000';
const key = (user: string) => `auth:user-id-by-idp:${user}`;
const cached = (user: string) => kv.engine.call('GET', key(user));
/** Returns the names of the commands that reached the cache since the previous call of this function. */
const commands = () => kv.takeCommands().map(([name]) => name);

/**
 * Loads the modules of the service again, as a separate process would. Returns a function that calls resolveUserId() of these
 * modules for a user. The result of that function is the internal id together with the logged fields.
 */
const loadProcess = () =>
  importAsProcess(async () => {
    const [{ withLogFields }, { resolveUserId }] = await Promise.all([
      import('#lib/log'),
      import('#lib/user-id'),
    ]);
    return async (user: string) => {
      const fields = {};
      const userId = await withLogFields(fields, () => resolveUserId(user, undefined));
      return { userId, ...fields };
    };
  });

let resolve: Awaited<ReturnType<typeof loadProcess>>;

beforeEach(async () => {
  resolve = await loadProcess();
  kv.takeCommands();
  database.takeStatements();
});
afterEach(async () => {
  vi.useRealTimers();
  kv.beforeCommand = async () => undefined;
  await kv.proxy.treat('forward');
  await allowInserts(database);
});

test('The first lookup of a user is a cache miss and stores the id, and the second lookup is a cache hit without a database query', async () => {
  const first = await resolve('user_new');
  expect(first).toEqual({ userId: await cached('user_new'), cache: 'miss', caller: 'created' });
  expect(commands()).toEqual(['GET', 'SET']);
  database.takeStatements();
  expect(await resolve('user_new')).toEqual({ userId: first.userId, cache: 'hit' });
  expect([commands(), database.takeStatements()]).toEqual([['GET'], []]);
});

test.each(['', '42', 'null', '{"id":1}', `"${OTHER_ID}"`, `${OTHER_ID} `, `0${OTHER_ID}`, OTHER_ID.slice(1)])(
  'A cached value that the service cannot have stored is a miss, and the id of the user replaces the value: %j',
  async (value) => {
    const user = `user_with_${value}`;
    await kv.engine.call('SET', key(user), value);
    const { userId, ...fields } = await resolve(user);
    expect(fields).toEqual({ cache: 'miss', caller: 'created' });
    expect(await cached(user)).toBe(userId);
  },
);

test('A cached value of the wrong Redis type is a miss, and does not count as a failure of the cache', async () => {
  kv.beforeCommand = async (command) => {
    const message = 'WRONGTYPE Operation against a key holding the wrong kind of value';
    if (command.toUpperCase() === 'GET') throw new CommandError(message);
  };
  const first = await resolve('user_list');
  for (let call = 0; call < 7; call += 1) {
    expect(await resolve('user_list')).toEqual({ userId: first.userId, cache: 'miss', caller: 'existing' });
  }
});

test.each(['ERR no WRONGTYPE Operation', 'WRONGTYPES', 'Command failed: ERR WRONGTYPE '])(
  'A cache error whose code is not WRONGTYPE counts as a failure of the cache, even if its text contains WRONGTYPE: %s',
  async (message) => {
    kv.beforeCommand = () => Promise.reject(new CommandError(message));
    expect(await resolve(`user_${message}`)).toMatchObject({ cache: 'bypass' });
  },
);

test('Concurrent lookups of a cached user in one process are all logged as cache hits, without the field `caller`', async () => {
  await kv.engine.call('SET', key('user_shared_hit'), OTHER_ID);
  const results = await Promise.all(Array.from({ length: 5 }, () => resolve('user_shared_hit')));
  expect(results).toEqual(Array.from({ length: 5 }, () => ({ userId: OTHER_ID, cache: 'hit' })));
});

test('A lookup with a failed cache read does not write to the cache', async () => {
  kv.beforeCommand = () => Promise.reject(new Error('failed by a test'));
  expect(await resolve('user_without_cache')).toMatchObject({ cache: 'bypass', caller: 'created' });
  expect(commands()).toEqual(['GET']);
  kv.beforeCommand = async () => undefined;
  expect(await cached('user_without_cache')).toBeNull();
});

test('A lookup with a failed cache write returns the id, and the next lookup is a miss', async () => {
  kv.beforeCommand = async (command) => {
    if (command.toUpperCase() === 'SET') throw new Error('failed by a test');
  };
  const { userId } = await resolve('user_not_stored');
  kv.beforeCommand = async () => undefined;
  expect(await resolve('user_not_stored')).toEqual({ userId, cache: 'miss', caller: 'existing' });
});

test('A cached id expires ten minutes after the write, and a hit does not extend this time', async () => {
  const start = Date.now();
  vi.useFakeTimers({ toFake: ['Date'], now: start });
  const { userId } = await resolve('user_expires');
  for (const seconds of [300, 599.999]) {
    vi.setSystemTime(start + seconds * 1000);
    expect(await resolve('user_expires')).toEqual({ userId, cache: 'hit' });
  }
  vi.setSystemTime(start + 600_000);
  expect(await resolve('user_expires')).toEqual({ userId, cache: 'miss', caller: 'existing' });
});

test('Concurrent calls for a new user in one process share one lookup, and only one call is logged as the creator', async () => {
  const results = await Promise.all(Array.from({ length: 20 }, () => resolve('user_shared')));
  expect(commands()).toEqual(['GET', 'SET']);
  expect(new Set(results.map(({ userId }) => userId)).size).toBe(1);
  const callers = results.map((result) => Object(result).caller);
  expect(callers.sort()).toEqual(['created', ...Array.from({ length: 19 }, () => 'existing')]);
});

test('A lookup passes a database error through, and does not write to the cache', async () => {
  await failInserts(database, DISK_FULL, 1);
  await expect(resolve('user_failed')).rejects.toThrow();
  expect([commands(), await cached('user_failed')]).toEqual([['GET'], null]);
});

test('Concurrent lookups of different users in one process share neither a cached nor a created id', async () => {
  await kv.engine.call('SET', key('user_one_of_three'), OTHER_ID);
  const users = ['user_one_of_three', 'user_two_of_three', 'user_three_of_three'];
  const [one, two, three] = (await Promise.all(users.map((user) => resolve(user)))).map(
    ({ userId }) => userId,
  );
  const ids = (await Promise.all(users.map(database.rowsOf))).map((rows) => rows.map(({ id }) => id));
  expect([[], [two], [three]]).toEqual(ids);
  expect(one).toBe(OTHER_ID);
});

test('Each step of a guarded request is a span with its outcome', async () => {
  const { enableTelemetry, resolveContext } = await importAsProcess(async () => ({
    ...(await import('#lib/log')),
    ...(await import('#lib/guard')),
  }));
  const spans: string[] = [];
  const withSpan: Telemetry['withSpan'] = async (name, work, outcomeOf) => {
    const result = await work();
    spans.push(`${name}: ${outcomeOf(result)}`);
    return result;
  };
  enableTelemetry(Object.create({ withSpan }));
  const spansOf = async (headers: Record<string, string>) => {
    await resolveContext(new Headers(headers));
    return spans.splice(0);
  };
  const session = { [VERDICT]: signVerdict({ user: 'user_of_spans' }) };
  expect(await spansOf({})).toEqual(['guard: rejected']);
  kv.beforeCommand = async (command) => {
    if (command.toUpperCase() === 'SET') throw new Error('failed by a test');
  };
  expect(await spansOf(session)).toEqual([
    'cache read: miss',
    'register: created',
    'cache write: error',
    'guard: passed',
  ]);
  kv.beforeCommand = () => Promise.reject(new Error('failed by a test'));
  expect(await spansOf(session)).toEqual(['cache read: error', 'register: existing', 'guard: passed']);
  kv.beforeCommand = async () => undefined;
  expect(await spansOf(session)).toContain('cache write: stored');
  expect(await spansOf(session)).toEqual(['cache read: hit', 'guard: passed']);
});

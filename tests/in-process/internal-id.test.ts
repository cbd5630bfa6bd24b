import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { describeError } from '#lib/base/errors';
import type { Telemetry } from '#lib/base/telemetry';
import { KINDS } from '#lib/ids/store';
import { CommandError } from '../../dev/kv';
import { DISK_FULL, importAsProcess, startInProcess } from '../harness/in-process';

const { database, kv } = await startInProcess();

/** A UUID that no row has. It is no UUID v7, as the id of an imported user. */
const OTHER_ID = '5f0c9a7e-1b2d-4c3e-8f90-a1b2c3d4e5f6';

/** Loads the modules of the service again, as a separate process would. */
const loadProcess = () =>
  importAsProcess(async () => ({
    ...(await import('#lib/base/telemetry')),
    resolveId: (await import('#lib/link')).link.resolve,
    resolveUser: (await import('#lib/link')).link.resolveUser,
  }));
let service: Awaited<ReturnType<typeof loadProcess>>;

/** Returns the names of the commands that reached the cache since the previous call of this function. */
const commands = () => kv.takeCommands().map(([name]) => name);
const failing = (name: string) => async (command: string) => {
  if (command.toUpperCase() === name) throw new Error('failed by a test');
};

beforeEach(async () => {
  service = await loadProcess();
  kv.takeCommands();
  database.takeStatements();
});
afterEach(async () => {
  vi.useRealTimers();
  kv.beforeCommand = async () => undefined;
  kv.proxy.onClientData = undefined;
  await database.proxy.treat('forward');
});

describe.each(['user', 'tenant'] as const)('The lookup of a %s', (kind) => {
  const { idsOf } = database.of(kind);
  const cached = (id: string) => kv.cachedId(id, kind);
  const resolve = (id: string) => service.resolveId(kind, id, undefined);

  test('is a miss the first time and stores the id, and later a hit without a database query', async () => {
    const first = await resolve('new');
    expect(first).toEqual({ state: 'linked', id: await cached('new'), cache: 'miss', caller: 'created' });
    expect(await idsOf('new')).toEqual([first?.id]);
    expect(commands()).toEqual(['GET', 'SET']);
    database.takeStatements();
    expect(await resolve('new')).toEqual({ state: 'linked', id: first?.id, cache: 'hit' });
    expect([commands(), database.takeStatements()]).toEqual([['GET'], []]);
  });

  test.each([
    '',
    '42',
    'null',
    '{"id":1}',
    `"${OTHER_ID}"`,
    `${OTHER_ID} `,
    `0${OTHER_ID}`,
    OTHER_ID.slice(1),
    '00000000-0000-0000-0000-000000000000',
  ])(
    'replaces a cached value that the service cannot have stored, for a tenant with a block: %j',
    async (value) => {
      const id = `with_${value}`;
      await kv.cacheId(id, value, kind);
      const { id: found, ...fields } = (await resolve(id)) ?? {};
      expect(fields).toEqual({ state: 'linked', cache: 'miss', caller: 'created' });
      expect(await cached(id)).toBe(kind === 'user' ? found : null);
    },
  );

  test('returns the id after a failed write, and the next lookup is a miss', async () => {
    kv.beforeCommand = failing('SET');
    const { id } = (await resolve('not_stored')) ?? {};
    kv.beforeCommand = async () => undefined;
    expect(await resolve('not_stored')).toEqual({ state: 'linked', id, cache: 'miss', caller: 'existing' });
  });

  test('expires ten minutes after the write, and a hit does not extend this time', async () => {
    const start = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: start });
    const { id } = (await resolve('expires')) ?? {};
    for (const seconds of [300, 599.999]) {
      vi.setSystemTime(start + seconds * 1000);
      expect(await resolve('expires')).toEqual({ state: 'linked', id, cache: 'hit' });
    }
    vi.setSystemTime(start + 600_000);
    expect(await resolve('expires')).toEqual({ state: 'linked', id, cache: 'miss', caller: 'existing' });
  });

  test('of different ids at the same time shares neither a cached nor a created id', async () => {
    await kv.cacheId('one', OTHER_ID, kind);
    const [one, two, three] = await Promise.all(['one', 'two', 'three'].map(resolve));
    const rows = (await Promise.all(['one', 'two', 'three'].map(idsOf))).flat();
    expect(rows).toEqual([two?.id, three?.id]);
    expect(one?.id).toBe(OTHER_ID);
  });

  test('passes a database error through, whose SQLSTATE is logged, and does not write to the cache', async () => {
    await database.pool.query(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE 'failed by a test' USING ERRCODE = '${DISK_FULL}'; END $$;
      CREATE TRIGGER fail BEFORE INSERT ON ${KINDS[kind].table} EXECUTE FUNCTION fail()`);
    const error = await resolve('failed').catch((thrown: unknown) => thrown);
    expect(describeError(error)).toMatchObject({ sqlState: DISK_FULL });
    await database.pool.query('DROP FUNCTION fail CASCADE');
    expect([commands(), await cached('failed')]).toEqual([['GET'], null]);
  });
});

test('A cached value that is not text is a miss', async () => {
  vi.spyOn(kv.engine, 'call').mockResolvedValueOnce({ a: 1 });
  expect(await service.resolveId('user', 'user_shaped', undefined)).toMatchObject({ cache: 'miss' });
});

test('A cached value of the wrong Redis type is a miss, and does not count as a failure of the cache', async () => {
  kv.beforeCommand = async (command) => {
    const message = 'WRONGTYPE Operation against a key holding the wrong kind of value';
    if (command.toUpperCase() === 'GET') throw new CommandError(message);
  };
  for (let call = 0; call < 8; call += 1)
    expect(await service.resolveId('user', 'user_list', undefined)).toMatchObject({ cache: 'miss' });
});

test.each(['ERR no WRONGTYPE Operation', 'WRONGTYPES', 'Command failed: ERR WRONGTYPE '])(
  'A cache error whose code is not WRONGTYPE counts as a failure of the cache, even if its text contains WRONGTYPE: %s',
  async (message) => {
    kv.beforeCommand = () => Promise.reject(new CommandError(message));
    expect(await service.resolveId('user', message, undefined)).toMatchObject({ cache: 'bypass' });
  },
);

// Leaves telemetry enabled, so this test is the last one.
test('Each step of a guarded request is a span with its outcome', async () => {
  const spans: string[] = [];
  const withSpan: Telemetry['withSpan'] = async (name, work, outcomeOf) => {
    const result = await work();
    spans.push(`${name}: ${outcomeOf(result)}`);
    return result;
  };
  service.enableTelemetry(Object.create({ withSpan }));
  const spansOf = async (verdict: Parameters<typeof service.resolveUser>[0]) => {
    await service.resolveUser(verdict);
    return spans.splice(0);
  };
  const session = { user: 'user_of_spans' };
  expect(await spansOf({ reason: 'signed-out' })).toEqual(['guard: rejected']);
  kv.beforeCommand = failing('SET');
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

import { attachDatabasePool } from '@vercel/functions';
import { Pool } from 'pg';
import { afterEach, expect, test, vi } from 'vitest';
import { lockRow } from '../harness/dependencies/row-lock';
import { importAsProcess, startInProcess } from '../harness/in-process';

vi.mock('@vercel/functions', () => ({ attachDatabasePool: vi.fn() }));

const { database } = await startInProcess();
const {
  closeDatabase,
  database: client,
  pingDatabase,
  withConnection,
  ...loaded
} = await importAsProcess(async () => ({
  ...(await import('#lib/storage/database')),
  ...(await import('#lib/base/shutdown')),
  ...(await import('#lib/base/log')),
}));

/** Returns the newest connection pool. */
function currentPool(): Pool | undefined {
  const [pool] = vi.mocked(attachDatabasePool).mock.lastCall ?? [];
  return pool instanceof Pool ? pool : undefined;
}

afterEach(async () => {
  vi.useRealTimers();
  await database.proxy.treat('forward');
  await closeDatabase();
});

test('The first query opens the connection pool, and Vercel gets the pool', async () => {
  await closeDatabase();
  await pingDatabase(1_000);
  expect(currentPool()).toMatchObject({ totalCount: 1, idleCount: 1, waitingCount: 0 });
});

test('A shutdown closes all database connections, and a later query opens a new pool', async () => {
  await pingDatabase(1_000);
  const pool = currentPool();
  await loaded.closeDependencies();
  expect(pool?.totalCount).toBe(0);
  await pingDatabase(1_000);
  expect(currentPool()).not.toBe(pool);
});

test('The loss of an idle database connection is logged and does not end the process', async () => {
  const warn = vi.spyOn(loaded.log, 'warn').mockReturnValue();
  await pingDatabase(1_000);
  await database.proxy.treat('reset');
  await expect
    .poll(() => warn.mock.calls)
    .toEqual([[{ error: expect.objectContaining({ name: 'Error' }) }, 'idle database connection lost']]);
  warn.mockRestore();
});

test('A check of the database fails if the database does not respond within the given time', async () => {
  await pingDatabase(1_000);
  await database.proxy.treat('black-hole');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const rejected = vi.fn();
  const ping = pingDatabase(700).catch(rejected);
  await vi.advanceTimersByTimeAsync(699);
  expect(rejected).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await ping;
  expect(rejected).toHaveBeenCalledTimes(1);
});

test('The second ping after a database was read-only resolves, although idle connections keep the old setting', async () => {
  await closeDatabase();
  await database.alter('SET default_transaction_read_only = on');
  await Promise.all(Array.from({ length: 3 }, () => client().$queryRaw`SELECT 1 FROM pg_sleep(0.1)`));
  expect(currentPool()?.idleCount).toBe(3);
  await database.alter('SET default_transaction_read_only = off');
  await expect(pingDatabase(1_000)).rejects.toMatchObject({ code: '25006' });
  await expect(pingDatabase(1_000)).resolves.toBeUndefined();
});

test('A transaction waits for a database that needs several seconds to start', async () => {
  await database.proxy.treat('hold');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const transaction = client().$transaction((running) => running.$queryRaw`SELECT 1 AS one`);
  await vi.advanceTimersByTimeAsync(6_900);
  await database.proxy.treat('forward');
  expect(await transaction).toEqual([{ one: 1 }]);
});

test('A transaction whose connection is terminated between two statements fails with an error that commands retry', async () => {
  const { withoutValues } = await import('#lib/base/errors');
  const transaction = client().$transaction(async (running) => {
    await running.$queryRaw`SELECT 1`;
    await database.pool.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'idle in transaction'`);
    return running.$queryRaw`SELECT 1`;
  });
  expect(withoutValues(await transaction.catch((error: unknown) => error))).toMatchObject({
    name: 'TransientError',
  });
});

test('PostgreSQL ends a statement of a transaction that waits for a lock before this process stops waiting, and a transaction that is idle for 8 s', async () => {
  const { sqlStateOf } = await import('#lib/base/sql-state');
  const lock = await lockRow(database, 'user_locked');
  const settings: unknown[] = [];
  const transaction = client().$transaction(
    async (running) => {
      settings.push(await running.$queryRaw`SELECT current_setting('idle_in_transaction_session_timeout')`);
      return running.$executeRaw`INSERT INTO users VALUES (gen_random_uuid(), 'user_locked')`;
    },
    { isolationLevel: 'Serializable' },
  );
  expect(sqlStateOf(await transaction.catch((error: unknown) => error))).toBe('57014');
  expect(settings).toEqual([[{ current_setting: '8s' }]]);
  expect(currentPool()).toMatchObject({ totalCount: 1, idleCount: 1 });
  await lock.release();
});

test('If the code of a transaction catches the timeout of a statement, nothing of the transaction is stored', async () => {
  const transaction = client().$transaction(async (running) => {
    await running.$queryRaw`SELECT 1`;
    await database.proxy.treat('stall');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const statement = running.$executeRaw`INSERT INTO users VALUES (gen_random_uuid(), 'user_late')`;
    const caught = expect(statement).rejects.toThrow('Query read timeout');
    await vi.advanceTimersByTimeAsync(3_000);
    await caught;
    await database.proxy.treat('forward');
    return running.$queryRaw`SELECT 1`;
  });
  await expect(transaction).rejects.toThrow();
  expect(await database.idsOf('user_late')).toEqual([]);
});

test('A connection whose transaction has not ended, or whose statement still runs, does not return to the pool', async () => {
  await pingDatabase(1_000);
  const pool = currentPool();
  for (const statement of ['BEGIN', 'BEGIN; SELECT 1 / 0', 'SELECT pg_sleep(60)']) {
    const client = await pool?.connect();
    const running = client?.query(statement).catch((error: Error) => error.message);
    if (statement.startsWith('BEGIN')) await running;
    client?.release();
    await running;
    expect(pool?.idleCount).toBe(0);
  }
  await pingDatabase(1_000);
  expect(pool?.idleCount).toBe(1);
});

test('Statements that need one connection share it, and it is closed after the last one', async () => {
  const [first, second] = await withConnection(async (rows) => [
    await rows('SELECT pg_backend_pid() AS pid'),
    await rows('SELECT pg_backend_pid() AS pid'),
  ]);
  expect(first).toEqual([{ pid: expect.any(Number) }]);
  expect(second).toEqual(first);
  expect(currentPool()?.totalCount).toBe(0);
  await expect(withConnection(() => Promise.reject(new Error('failed by a test')))).rejects.toThrow('failed');
  expect(currentPool()?.totalCount).toBe(0);
});

test('At most ten database connections are open at the same time', async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const connections = Array.from({ length: 11 }, () => withConnection(() => released));
  await expect.poll(currentPool).toMatchObject({ totalCount: 10, waitingCount: 1 });
  release();
  await Promise.all(connections);
});

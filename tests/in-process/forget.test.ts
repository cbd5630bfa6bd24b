import { beforeEach, expect, test, vi } from 'vitest';
import { query } from '../harness/dependencies/database';
import { importAsProcess, startInProcess } from '../harness/in-process';

/** Requested lengths of the pauses so far, in milliseconds. The mock shortens each pause to at most one millisecond. */
const { pauses } = vi.hoisted(() => ({ pauses: Array.of<number | undefined>() }));
vi.mock('node:timers/promises', async (original) => {
  const timers = await original<typeof import('node:timers/promises')>();
  const setTimeout = (milliseconds?: number) => {
    pauses.push(milliseconds);
    return timers.setTimeout(Math.min(milliseconds ?? 1, 1));
  };
  return { ...timers, setTimeout };
});

const { database, kv } = await startInProcess();

const {
  forget: forgetUser,
  forgottenUntil,
  registerByIdentityProviderUserId,
  resolveId,
} = await importAsProcess(async () => ({
  ...(await import('#lib/users/forget')),
  ...(await import('#lib/linking/links')),
  ...(await import('#lib/register')),
  ...(await import('#lib/internal-id')),
}));

/**
 * Calls `forget()`, which deletes the row and the cached id of a user and stores a hash of the id in `forgotten_users` for the
 * given number of days. Calls `meanwhile` instead of the pause in which `forget()` waits for the lookups in flight.
 */
const forget = (user: string, meanwhile: () => Promise<unknown> = async () => undefined, days = 30) =>
  forgetUser(user, days, meanwhile);
const resolve = async (user: string) => (await resolveId('user', user, 0))?.id ?? '';

/** First words of the cache commands and database statements, in the order of their arrival. */
const steps: string[] = [];
const record = database.proxy.onClientData;

beforeEach(() => {
  database.proxy.onClientData = (chunk) => {
    record?.(chunk);
    steps.push(...database.takeVerbs());
  };
  kv.beforeCommand = async (command) => {
    steps.push(command.toUpperCase());
  };
});

test('A deletion removes the cached id before the row, after the row and after a pause of 9 s, and so also an id that a lookup caches during the pause', async () => {
  const userId = await resolve('user_gone');
  steps.length = 0;
  const result = await forget('user_gone', async () => {
    await kv.cacheId('user_gone', userId);
    steps.push('pause');
  });
  expect([result, await database.idsOf('user_gone'), await kv.cachedId('user_gone')]).toEqual([
    'forgotten',
    [],
    null,
  ]);
  const changes = steps.filter((step) => !['BEGIN', 'SET', 'COMMIT'].includes(step));
  // WITH stores the hash of an id in `forgotten_users`, and the DELETE after it removes expired hashes. The last DELETE removes the row.
  // The transaction reads the row and the previous ids of the user. The last SELECT checks whether the user is linked again.
  expect(changes).toEqual([
    'SELECT',
    'DEL',
    'WITH',
    'DELETE',
    'SELECT',
    'SELECT',
    'WITH',
    'DELETE',
    'DELETE',
    'DEL',
    'pause',
    'DEL',
    'SELECT',
  ]);
  pauses.length = 0;
  await forgetUser('user_gone', 30);
  expect(pauses).toEqual([9_000]);
});

test('A row that another table refers to without ON DELETE CASCADE is not deleted', async () => {
  const userId = await resolve('user_referenced');
  await database.pool.query(`CREATE TABLE orders (user_id uuid REFERENCES users (id))`);
  await database.pool.query('INSERT INTO orders VALUES ($1)', [userId]);
  expect(await forget('user_referenced')).toBe('referenced');
  expect(await resolve('user_referenced')).toBe(userId);
  expect([...(await forgottenUntil(['user_referenced']))]).toEqual([]);
});

test('A user that is forgotten for 0 days has no row in `forgotten_users`, and any registration links the user again', async () => {
  await forget('user_unprotected');
  const { rows: before } = await database.pool.query('SELECT FROM forgotten_users');
  expect(await forget('user_unprotected', undefined, 0)).toBe('forgotten');
  const { rows: after } = await database.pool.query('SELECT FROM forgotten_users');
  expect(after).toHaveLength(before.length - 1);
  expect(await registerByIdentityProviderUserId('user_unprotected')).toMatchObject({ created: true });
});

test('The database accepts only one secret key for hashing the ids of forgotten users, and links no user while this key is missing', async () => {
  const { pool } = database;
  await expect(pool.query(`INSERT INTO forgotten_users_key VALUES ('\\x00')`)).rejects.toThrow('single_row');
  const { rows } = await pool.query('DELETE FROM forgotten_users_key RETURNING key');
  await expect(registerByIdentityProviderUserId('user_without_key')).rejects.toThrow();
  await pool.query('INSERT INTO forgotten_users_key VALUES ($1)', [rows[0].key]);
  expect(await registerByIdentityProviderUserId('user_without_key')).toMatchObject({ created: true });
});

test('A row of `forgotten_users` contains a hash instead of the id and expires after the given number of days', async () => {
  await forget('user_400_days', undefined, 400);
  const { rows } = await database.pool.query(
    `SELECT expires_at - forgotten_at = '400 days' AS lasts, length(id_hash) AS bytes FROM forgotten_users
     WHERE id_hash = forgotten_user_hash('user_400_days')`,
  );
  expect(rows).toEqual([{ lasts: true, bytes: 32 }]);
  const until = await forgottenUntil(['user_400_days', 'user_other']);
  expect([...until.keys()]).toEqual(['user_400_days']);
  expect(Math.round(((until.get('user_400_days') ?? 0) - Date.now()) / 86_400_000)).toBe(400);
});

test('The database role of the service can check whether an id is forgotten, but cannot read the hashes or their key', async () => {
  const { url } = await database.createRole('GRANT SELECT, INSERT ON users TO $role');
  expect(await query(url, `SELECT forgotten_until('user_30_days', NULL) AS until`)).toEqual([
    { until: null },
  ]);
  for (const table of ['forgotten_users', 'forgotten_users_key'])
    await expect(query(url, `SELECT FROM ${table}`)).rejects.toThrow('permission denied');
});

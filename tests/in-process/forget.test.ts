import { beforeEach, describe, expect, test, vi } from 'vitest';
import { KINDS } from '#lib/ids/store';
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

const service = await importAsProcess(async () => ({
  ...(await import('#lib/operator/forget')),
  ...(await import('#lib/ids/store')),
  ...(await import('#lib/register')),
  resolveId: (await import('#lib/link')).link.resolve,
}));

/** First words of the cache commands and database statements, in the order of their arrival. */
const steps: string[] = [];
const record = database.proxy.onClientData;

beforeEach(() => {
  database.proxy.onClientData = (chunk) => {
    record?.(chunk);
    steps.push(...database.takeVerbs());
  };
  kv.beforeCommand = async (command) => {
    steps.push(/^(?:DEL|SET)$/i.test(command) ? 'uncache' : command);
  };
});

describe.each(['user', 'tenant'] as const)('Forget a %s', (kind) => {
  const { table } = KINDS[kind];
  const { idsOf } = database.of(kind);
  /**
   * Calls `forget()`, which deletes the row and the cached id and stores a hash of the id in `forgotten_users` for the given
   * number of days. Calls `meanwhile` instead of the pause in which `forget()` waits for the lookups in flight.
   */
  const forget = (id: string, meanwhile: () => Promise<unknown> = async () => undefined, days = 30) =>
    service.forget(kind, id, days, { by: 'me' }, meanwhile);
  const resolve = async (id: string) => (await service.resolveId(kind, id, 0))?.id ?? '';

  test('A deletion removes the cached id before the row, after the row and after a pause of 9 s, and so also an id that a lookup caches during the pause', async () => {
    const id = await resolve('gone');
    steps.length = 0;
    const result = await forget('gone', async () => {
      await kv.cacheId('gone', id, kind);
      steps.push('pause');
    });
    expect([result, await idsOf('gone'), await kv.cachedId('gone', kind)]).toEqual(['forgotten', [], null]);
    const changes = steps.filter(
      (step, at) =>
        !['BEGIN', 'SET', 'COMMIT'].includes(step) && [step, steps[at - 1]].join() !== 'uncache,uncache',
    );
    // The transaction locks the id, locks the row and reads it, stores the hashes of its ids (WITH), and deletes expired
    // hashes. It records the deletion in the history, deletes the row, records the deletion as unfinished, and deletes the pending one. The last SELECT checks whether the id is linked again, and the last WITH deletes the record.
    expect(changes.join(' ')).toBe(
      'SELECT uncache SELECT SELECT SELECT WITH DELETE INSERT DELETE INSERT SELECT DELETE uncache pause uncache SELECT WITH',
    );
    pauses.length = 0;
    await service.forget(kind, 'gone', 30, { by: 'me' });
    expect(pauses).toEqual([9_000]);
  });

  test.each([
    ['orders', ''],
    ['notes', 'ON DELETE SET NULL NOT NULL'],
  ])(
    'A row that the table %s needs is not deleted, and the error names this table',
    async (name, constraint) => {
      const id = await resolve(name);
      await database.pool.query(
        `CREATE TABLE "a ""${name}"" of ${table}" (id uuid REFERENCES ${table} (id) ${constraint})`,
      );
      await database.pool.query(`INSERT INTO "a ""${name}"" of ${table}" VALUES ($1)`, [id]);
      await expect(forget(name)).rejects.toThrow(`rows of the table a "${name}" of ${table} need the row`);
      expect(await resolve(name)).toBe(id);
      expect([...(await service.forgottenUntil(kind, [name]))]).toEqual([]);
    },
  );

  test.each(['present', 'previous'])(
    'After an interrupted deletion, a repetition by the %s id removes the cached ids of all ids that the row had',
    async (repeated) => {
      const ids = { present: `by_${repeated}`, previous: `by_${repeated}_before` };
      const id = await resolve(ids.present);
      await database.pool.query(`INSERT INTO previous_ids VALUES ($1, $2, $3, $4, 'run', '2099-01-01Z')`, [
        kind,
        ids.previous,
        id,
        ids.present,
      ]);
      const interrupt = async () => {
        for (const each of Object.values(ids)) await kv.cacheId(each, id, kind);
        throw new Error('interrupted');
      };
      await expect(forget(ids.present, interrupt)).rejects.toThrow('interrupted');
      expect(await forget(repeated === 'present' ? ids.present : ids.previous)).toBe('forgotten');
      for (const each of Object.values(ids)) expect(await kv.cachedId(each, kind)).toBeNull();
      expect((await database.pool.query('SELECT FROM unfinished_deletions')).rowCount).toBe(0);
    },
  );

  test('A user or tenant that is forgotten for 0 days has no row in `forgotten_users`, and any registration links the id again', async () => {
    await forget('unprotected');
    const { rows: before } = await database.pool.query('SELECT FROM forgotten_users');
    expect(await forget('unprotected', undefined, 0)).toBe('forgotten');
    const { rows: after } = await database.pool.query('SELECT FROM forgotten_users');
    expect(after).toHaveLength(before.length - 1);
    expect(await service.register(kind, 'unprotected')).toMatchObject({ created: true });
  });

  test('The database accepts only one secret key for hashing the forgotten ids, and links no id while this key is missing', async () => {
    const { pool } = database;
    await expect(pool.query(`INSERT INTO forgotten_users_key VALUES ('\\x00')`)).rejects.toThrow(
      'single_row',
    );
    const { rows } = await pool.query('DELETE FROM forgotten_users_key RETURNING key');
    await expect(service.register(kind, 'without_key')).rejects.toThrow();
    await pool.query('INSERT INTO forgotten_users_key VALUES ($1)', [rows[0].key]);
    expect(await service.register(kind, 'without_key')).toMatchObject({ created: true });
  });

  test('A row of `forgotten_users` contains a hash instead of the id, also of the internal id of a user, and expires after the given number of days', async () => {
    const internalId = await resolve('400_days');
    await forget('400_days', undefined, 400);
    const { rows } = await database.pool.query(
      `SELECT expires_at - forgotten_at = '400 days' AS lasts, length(id_hash) AS bytes FROM forgotten_users
     WHERE id_hash = forgotten_hash('${kind}', '400_days')`,
    );
    expect(rows).toEqual([{ lasts: true, bytes: 32 }]);
    const until = await service.forgottenUntil(kind, ['400_days', internalId, 'other']);
    expect([...until.keys()]).toEqual(kind === 'user' ? ['400_days', internalId] : ['400_days']);
    expect(Math.round(((until.get('400_days') ?? 0) - Date.now()) / 86_400_000)).toBe(400);
  });

  test('The database role of the service can check whether an id is forgotten, but cannot read the hashes or their key', async () => {
    const { url } = await database.createRole(`GRANT SELECT, INSERT ON ${table} TO $role`);
    expect(await query(url, `SELECT forgotten_until('${kind}', '30_days', NULL) AS until`)).toEqual([
      { until: null },
    ]);
    for (const table of ['forgotten_users', 'forgotten_users_key'])
      await expect(query(url, `SELECT FROM ${table}`)).rejects.toThrow('permission denied');
  });
});

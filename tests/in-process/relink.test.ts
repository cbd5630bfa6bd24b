import { describe, expect, onTestFinished, test } from 'vitest';
import { KINDS } from '#lib/ids/store';
import type { MapLine } from '#lib/operator/relink-map';
import { cacheKey } from '../harness/dependencies/kv';
import { openTransaction, pauseInserts } from '../harness/dependencies/row-lock';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { inParallel } from '../harness/parallel';

// An operator moves users or organizations to another instance of the identity provider. Each keeps the internal id and gets a
// new id of the provider. The old id becomes a previous id, which leads to the same internal id until it expires. A run moves the
// ids of a map, whose lines contain an old and a new id. An operator can also forget an id. The row is then deleted, and the id
// is linked again only by a session token of the user that is newer than the deletion.
const { database, kv } = await startInProcess();
const { pool } = database;

/** Imports the modules of lib/ as a new process of the service does. */
const loadProcess = () =>
  importAsProcess(async () => ({
    ...(await import('#lib/register')),
    resolveId: (await import('#lib/link')).link.resolve,
    ...(await import('#lib/ids/store')),
    ...(await import('#lib/operator/relink')),
    ...(await import('#lib/operator/delete-link')),
    ...(await import('#lib/operator/forget')),
    ...(await import('#lib/storage/database')),
  }));
const one = await loadProcess();
const other = await loadProcess();

/** Default name of a run. It is stored with each previous id. */
const RUN = 'run of a test';
const linesOf = (...pairs: readonly (readonly [string, string])[]): MapLine[] =>
  pairs.map(([oldId, newId], index) => ({ line: index + 1, oldId, newId }));

describe.each(['user', 'tenant'] as const)('Relink of a %s', (kind) => {
  const { column, table } = KINDS[kind];
  const { idsOf, link, markForgotten } = database.of(kind);
  const runOptions = { kind, run: RUN, by: 'me', days: 30, retryOptions: { seconds: 20 } };
  /**
   * Moves the ids of a map. Returns the numbers of ids that moved or had already moved, and the kinds of the collisions. A
   * collision is a line of the map that cannot be applied.
   */
  async function relink(
    lines: readonly MapLine[],
    options: { run?: string; days?: number; dryRun?: boolean } = {},
  ) {
    const kinds: unknown[] = [];
    const result = { moved: 0, already: 0, kinds };
    for await (const page of other.relink(lines, { ...runOptions, ...options }))
      for (const { outcome, reason } of page) {
        if (outcome === 'collision') kinds.push(reason);
        else result[outcome === 'already moved' ? 'already' : 'moved'] += 1;
      }
    return result;
  }
  const move = (oldId: string, newId: string, options = {}) => relink(linesOf([oldId, newId]), options);
  /** Result of a run that moves one id, and of one that reports one collision. */
  const MOVED = { moved: 1, already: 0, kinds: [] };
  const collision = (reason: string) => ({ moved: 0, already: 0, kinds: [reason] });

  const register = (id: string, process = one) => process.register(kind, id);
  const resolve = async (id: string, issuedAt = 0, process = one) =>
    (await process.resolveId(kind, id, issuedAt))?.id;
  const create = async (id: string): Promise<string> => {
    const registration = await register(id);
    if (registration.state === 'forgotten') throw new Error('The id is forgotten');
    return registration.id;
  };
  const readJournal = (run: string) => one.readJournal(kind, run, { seconds: 0 });

  test('A moved user or tenant has the same internal id under all ids, and each lookup takes one database statement', async () => {
    const internalId = await create('old_1');
    expect(await move('old_1', 'new_1', { dryRun: true })).toEqual(MOVED);
    expect(await idsOf('old_1')).toEqual([internalId]);
    expect(await move('old_1', 'new_1', { days: 7 })).toEqual(MOVED);
    database.takeStatements();
    for (const id of ['old_1', 'new_1']) {
      expect(await register(id)).toEqual({ state: 'linked', id: internalId, created: false });
      expect(await resolve(id)).toBe(internalId);
      // A relink blocks the ids of a tenant in the cache.
      expect(await kv.cachedId(id, kind)).toBe(kind === 'user' ? internalId : null);
    }
    expect(database.takeVerbs()).toEqual(['SELECT', 'SELECT', 'SELECT', 'SELECT']);
    const { rows } = await pool.query(
      `SELECT provider_id AS id, run, replaced_by, round(extract(epoch FROM expires_at - now()) / 86400)::int AS days
     FROM previous_ids WHERE internal_id = $1`,
      [internalId],
    );
    expect(rows).toEqual([{ id: 'old_1', run: RUN, replaced_by: 'new_1', days: 7 }]);
    await kv.cacheId('new_1', '019a0000-0000-7000-8000-000000000000', kind);
    expect(await move('old_1', 'new_1')).toEqual({ moved: 0, already: 1, kinds: [] });
    expect(await kv.cachedId('new_1', kind)).toBeNull();
    expect(await move('new_1', 'newer_1')).toEqual(MOVED);
    for (const id of ['old_1', 'new_1', 'newer_1']) expect(await resolve(id)).toBe(internalId);
  });

  test('A previous id that has expired is not accepted and never gets another internal id', async () => {
    const internalId = await create('old_expired');
    await move('old_expired', 'new_expired');
    await pool.query(`UPDATE previous_ids SET expires_at = now() WHERE provider_id = 'old_expired'`);
    expect(await register('old_expired')).toEqual({ state: 'forgotten' });
    expect(await resolve('old_expired', Date.now() / 1000 + 60)).toBeUndefined();
    await expect(one.insertLinks(kind, ['old_expired'])).rejects.toThrow();
    await create('old_of_another');
    const change = `UPDATE ${table} SET ${column} = 'old_expired' WHERE ${column} = $1`;
    await expect(pool.query(change, ['old_of_another'])).rejects.toThrow(
      `the id is a previous id of a ${kind}`,
    );
    expect(await idsOf('old_expired')).toEqual([]);
    expect(await resolve('new_expired')).toBe(internalId);
  });

  test('A rollback with the journal of a run (the previous ids that the run stored) gives the old ids back, and the new ids become previous ids', async () => {
    const internalId = await create('old_back');
    await move('old_back', 'new_back', { run: 'to undo' });
    const lines = await readJournal('to undo');
    expect(lines).toEqual(linesOf(['new_back', 'old_back']));
    expect(await relink(lines, { run: 'undo' })).toEqual(MOVED);
    expect([await idsOf('old_back'), await idsOf('new_back')]).toEqual([[internalId], []]);
    for (const id of ['old_back', 'new_back']) expect(await resolve(id)).toBe(internalId);
    expect(await readJournal('to undo')).toEqual([]);
    expect(await move('old_back', 'new_back')).toEqual(MOVED);
  });

  test.each(['read committed', 'repeatable read', 'serializable'])(
    'A registration during which another process links and moves the id returns the internal id (isolation level %s)',
    async (isolation) => {
      const [oldId, newId] = [`old_race_${isolation}`, `new_race_${isolation}`];
      await database.alter(`SET default_transaction_isolation = '${isolation}'`);
      await one.closeDatabase();
      onTestFinished(async () => {
        await database.alter('RESET default_transaction_isolation');
        await one.closeDatabase();
      });
      const { insert, resume } = await pauseInserts(database, kind);
      const registration = register(oldId);
      expect(await database.areBlocked(1)).toBe(true);
      await insert(oldId);
      const [internalId] = await idsOf(oldId);
      expect(await move(oldId, newId)).toEqual(MOVED);
      await resume();
      expect(await registration).toEqual({ state: 'linked', id: internalId, created: false });
      expect([await idsOf(oldId), await idsOf(newId)]).toEqual([[], [internalId]]);
    },
  );

  test.each([
    [
      'registers the new id',
      `INSERT INTO ${table} VALUES (gen_random_uuid(), 'NEW')`,
      'new id is linked to another internal id',
    ],
    ['deletes the row', `DELETE FROM ${table} WHERE ${column} = 'OLD'`, 'unknown old id'],
    [
      'makes the new id a previous id of another row',
      `LOCK TABLE previous_ids IN SHARE MODE; INSERT INTO previous_ids
       SELECT '${kind}', 'NEW', id, 'x', 'other run', now() FROM ${table} WHERE ${column} = 'OTHER'`,
      'new id is a previous id of another internal id',
    ],
  ])(
    'If another transaction %s during a move, the move is a collision and undoes nothing of it',
    async (_what, statement, reason) => {
      const named = (text: string) => text.replace(/OLD|NEW|OTHER/g, (name) => `${name} before: ${reason}`);
      for (const name of ['OLD', 'OTHER']) await create(named(name));
      const other = await openTransaction(database, named(statement));
      const moving = move(named('OLD'), named('NEW'));
      expect(await other.waiting(1)).toBe(true);
      await other.commit();
      expect(await moving).toEqual(collision(reason));
      expect(await idsOf(named('OLD'))).toHaveLength(reason === 'unknown old id' ? 0 : 1);
      const previous = 'SELECT FROM previous_ids WHERE kind = $1 AND provider_id = $2';
      const { rowCount } = await pool.query(previous, [kind, named('NEW')]);
      expect(rowCount).toBe(reason.includes('previous') ? 1 : 0);
    },
  );

  test('If a registration of the new id waits for the move, the registration returns the internal id of the moved row', async () => {
    const internalId = await create('old_first');
    const update = `UPDATE ${table} SET ${column} = 'new_first' WHERE id = $1`;
    const moving = await openTransaction(database, update, [internalId]);
    const registration = register('new_first');
    expect(await moving.waiting(1)).toBe(true);
    await moving.commit();
    expect(await registration).toEqual({ state: 'linked', id: internalId, created: false });
  });

  test('If a move would deadlock with a transaction of the application, the move is rolled back and repeated', async () => {
    // The move ends at its lock timeout of 0.5 s. Without this timeout, PostgreSQL would detect the deadlock in the transaction
    // of the application after 1 s and cancel that transaction. The test sets `deadlock_timeout` to 1 s for that transaction, and
    // to 1 min for the move, so that PostgreSQL does not detect the deadlock in the move first.
    await database.alter(`SET deadlock_timeout = '1min'`);
    await other.closeDatabase();
    const ids = [await create('old_lock_1'), await create('old_lock_2')];
    const lines = linesOf(['old_lock_1', 'new_lock_1'], ['old_lock_2', 'new_lock_2']);
    // The test does not know in which order the move locks the rows. The application therefore locks them in both orders, one
    // after the other. The order that is opposite to the order of the move causes the deadlock.
    for (const [first, second] of [ids, ids.toReversed()]) {
      const holder = await pool.connect();
      try {
        await holder.query(`BEGIN; SET LOCAL deadlock_timeout = '1s'`);
        await holder.query(`SELECT FROM ${table} WHERE id = $1 FOR KEY SHARE`, [first]);
        const moving = relink(lines);
        expect(await database.areBlocked(1)).toBe(true);
        await holder.query(`SELECT FROM ${table} WHERE id = $1 FOR KEY SHARE`, [second]);
        await holder.query('COMMIT');
        expect(await moving).toEqual({ moved: 2, already: 0, kinds: [] });
      } finally {
        holder.release(true);
      }
      await relink((await readJournal(RUN)).filter(({ newId }) => newId.startsWith('old_lock')));
    }
    await database.alter('RESET deadlock_timeout');
    await other.closeDatabase();
  });

  test.each(['old_forget', 'new_forget'])(
    'The deletion of a moved user or tenant by one id forgets both ids: %s',
    async (id) => {
      const pair = [`${id}_old`, `${id}_new`] as const;
      const given = id === 'old_forget' ? pair[0] : pair[1];
      await create(pair[0]);
      await move(...pair);
      for (const each of pair) await resolve(each);
      kv.takeCommands();
      expect(await one.forget(kind, given, 30, { by: 'me' }, async () => undefined)).toBe('forgotten');
      const keys = pair.map((each) => cacheKey(each, kind));
      const uncached = kv.takeCommands().flat();
      for (const key of keys) expect(uncached.filter((word) => word === key).length).toBeGreaterThan(2);
      for (const each of pair) {
        expect(await register(each)).toEqual({ state: 'forgotten' });
        expect([await idsOf(each), await kv.cachedId(each, kind)]).toEqual([[], null]);
      }
      if (kind === 'user') expect(await resolve(pair[1], Date.now() / 1000 + 60, other)).toBeDefined();
    },
  );

  test('After a deletion that runs at the same time as a move, neither id has a row', async () => {
    const users = Array.from({ length: 20 }, (_, index) => index);
    for (const user of users) await create(`old_both_${user}`);
    await inParallel(5, users, async (user) => {
      const [oldId, newId] = [`old_both_${user}`, `new_both_${user}`];
      await Promise.all([move(oldId, newId), one.deleteLink(kind, oldId, 30, { by: 'me' }), register(oldId)]);
      const forgotten = await idsOf(oldId);
      expect([forgotten, await idsOf(newId), await register(oldId)]).toEqual([
        [],
        [],
        { state: 'forgotten' },
      ]);
    });
  });

  test('A pending deletion of the old or of the new id is a collision, and so is a forgotten new id of a user', async () => {
    await create('old_pending');
    const schedule = (id: string) =>
      pool.query('INSERT INTO pending_deletions VALUES ($1, $2, now())', [kind, id]);
    const lost = collision('new id is forgotten or has a pending deletion');
    await schedule('new_pending');
    expect(await move('old_pending', 'new_pending')).toEqual(lost);
    await markForgotten('new_forgotten');
    expect(await move('old_pending', 'new_forgotten')).toEqual(kind === 'tenant' ? MOVED : lost);
    // A tenant that has moved is not forgotten any more.
    const tombstones = 'SELECT FROM forgotten_users WHERE id_hash = forgotten_hash($1, $2)';
    const { rowCount } = await pool.query(tombstones, [kind, 'new_forgotten']);
    expect(rowCount).toBe(kind === 'tenant' ? 0 : 1);
    const presentId = kind === 'tenant' ? 'new_forgotten' : 'old_pending';
    await schedule(presentId);
    expect(await move(presentId, 'new_free')).toEqual(collision('old id has a pending deletion'));
  });

  test('Users and tenants keep their internal ids if they are moved while two processes look up their old and new ids', async () => {
    const users = Array.from({ length: 400 }, (_, user) => [`old_live_${user}`, `new_live_${user}`] as const);
    await link(...users.map(([oldId]) => oldId));
    /** Returns the number and the internal id of each of these users. */
    const idsBy = async (prefix: string) => {
      const { rows } = await pool.query(`SELECT ${column} AS provided, id FROM ${table}`);
      const found = rows.filter(({ provided }) => provided.startsWith(prefix));
      return new Map<string, string>(found.map(({ provided, id }) => [provided.slice(prefix.length), id]));
    };
    const before = await idsBy('old_live_');
    let done = false;
    let moved = 0;
    const wrong: string[] = [];
    const traffic = inParallel(8, Array.from({ length: 8 }), async (_, worker) => {
      for (let index = worker; !done; index += 7) {
        const [oldId, newId] = users[index % users.length] ?? ['', ''];
        const process = index % 2 === 0 ? one : other;
        // In this test, the new instance of the provider has a user only after the move.
        const id = index % users.length < moved && index % 3 === 0 ? newId : oldId;
        const found = index % 5 === 0 ? (await register(id, process))?.id : await resolve(id, 0, process);
        if (found !== before.get(oldId.slice(9))) wrong.push(`${id} ${found}`);
      }
    });
    const lines = linesOf(...users);
    for await (const page of other.relink(lines, runOptions)) moved += page.length;
    done = true;
    await traffic;
    expect([moved, wrong]).toEqual([400, []]);
    expect(await idsBy('new_live_')).toEqual(before);
  });
});

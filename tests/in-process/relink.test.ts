import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import type { MapLine } from '#lib/users/relink-map';
import { cacheKey } from '../harness/dependencies/kv';
import { lockRow, openTransaction, pauseInserts } from '../harness/dependencies/row-lock';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { inParallel } from '../harness/parallel';

// An operator moves users to another instance of the identity provider. A moved user keeps the internal id and gets a new id
// of the provider. The old id becomes a previous id, which leads to the same internal id until it expires. A run moves the
// users of a map, whose lines contain the old and the new id of a user. An operator can also forget a user. The row of the user
// in `users` is then deleted, and only a session token that is newer than the deletion links the user again.
const { database, kv } = await startInProcess();
const { pool } = database;

/** Imports the modules of lib/ as a new process of the service does. */
const loadProcess = () =>
  importAsProcess(async () => {
    const [register, ids, links, backfill, relink, rows, forget, storage] = await Promise.all([
      import('#lib/register'),
      import('#lib/internal-id'),
      import('#lib/linking/links'),
      import('#lib/users/backfill'),
      import('#lib/users/relink'),
      import('#lib/users/rows'),
      import('#lib/users/forget'),
      import('#lib/storage/database'),
    ]);
    return {
      register: register.registerByIdentityProviderUserId,
      guard: async (user: string, issuedAt = 0) => (await ids.resolveId('user', user, issuedAt))?.id,
      insertLinks: links.insertLinks,
      linkMany: backfill.linkMany,
      deleteLink: rows.deleteLink,
      forget: (user: string) => forget.forget(user, 30, async () => undefined),
      closeDatabase: storage.closeDatabase,
      readJournal: relink.readJournal,
      relink: relink.relink,
    };
  });
const one = await loadProcess();
const other = await loadProcess();

/** Default name of a run. It is stored with each previous id. */
const RUN = 'run of a test';
const linesOf = (...pairs: readonly (readonly [string, string])[]): MapLine[] =>
  pairs.map(([oldId, newId], index) => ({ line: index + 1, oldId, newId }));
/**
 * Moves the users of a map. Returns the numbers of users that moved or had already moved, and the kinds of the collisions. A
 * collision is a line of the map that cannot be applied.
 */
async function relink(
  lines: readonly MapLine[],
  options: { run?: string; days?: number; dryRun?: boolean } = {},
) {
  const kinds: unknown[] = [];
  const result = { moved: 0, already: 0, kinds };
  const runOptions = { run: RUN, days: 30, retryOptions: { seconds: 20 }, ...options };
  for await (const page of other.relink(lines, runOptions))
    for (const { outcome, reason } of page) {
      if (outcome === 'collision') kinds.push(reason);
      else result[outcome === 'already moved' ? 'already' : 'moved'] += 1;
    }
  return result;
}
const move = (oldId: string, newId: string, options = {}) => relink(linesOf([oldId, newId]), options);
/** Result of a run that moves one user. */
const MOVED = { moved: 1, already: 0, kinds: [] };

const create = async (user: string): Promise<string> => {
  const registration = await one.register(user);
  if (registration === undefined) throw new Error('The user is forgotten');
  return registration.userId;
};
const expire = (id: string) =>
  pool.query('UPDATE previous_ids SET expires_at = now() WHERE identity_provider_user_id = $1', [id]);
beforeEach(() => {
  database.takeStatements();
});
afterEach(() => kv.proxy.treat('forward'));

test('A moved user has the same internal id under all ids, and each lookup takes one database statement', async () => {
  const userId = await create('old_1');
  expect(await move('old_1', 'new_1', { dryRun: true })).toEqual(MOVED);
  expect(await database.idsOf('old_1')).toEqual([userId]);
  expect(await move('old_1', 'new_1', { days: 7 })).toEqual(MOVED);
  database.takeStatements();
  for (const id of ['old_1', 'new_1']) {
    expect(await one.register(id)).toEqual({ userId, created: false });
    expect(await one.guard(id)).toBe(userId);
    expect(await kv.cachedId(id)).toBe(userId);
  }
  expect(database.takeVerbs()).toEqual(['SELECT', 'SELECT', 'SELECT', 'SELECT']);
  const { rows } = await pool.query(
    `SELECT identity_provider_user_id AS id, run, replaced_by, round(extract(epoch FROM expires_at - now()) / 86400)::int AS days
     FROM previous_ids WHERE user_id = $1`,
    [userId],
  );
  expect(rows).toEqual([{ id: 'old_1', run: RUN, replaced_by: 'new_1', days: 7 }]);
  await kv.cacheId('new_1', '019a0000-0000-7000-8000-000000000000');
  expect(await move('old_1', 'new_1')).toEqual({ moved: 0, already: 1, kinds: [] });
  expect(await kv.cachedId('new_1')).toBeNull();
  expect(await move('new_1', 'newer_1')).toEqual(MOVED);
  for (const id of ['old_1', 'new_1', 'newer_1']) expect(await one.guard(id)).toBe(userId);
});

test('A previous id that has expired is not accepted and never gets another internal id', async () => {
  const userId = await create('old_expired');
  await move('old_expired', 'new_expired');
  await expire('old_expired');
  expect(await one.register('old_expired')).toBeUndefined();
  expect(await one.guard('old_expired', Date.now() / 1000 + 60)).toBeUndefined();
  expect((await one.linkMany(['old_expired'])).size).toBe(0);
  await expect(one.insertLinks(['old_expired'])).rejects.toThrow();
  await create('old_of_another');
  const change = `UPDATE users SET identity_provider_user_id = 'old_expired' WHERE identity_provider_user_id = $1`;
  await expect(pool.query(change, ['old_of_another'])).rejects.toThrow('the id is a previous id of a user');
  expect(await database.idsOf('old_expired')).toEqual([]);
  expect(await one.guard('new_expired')).toBe(userId);
});

test('A rollback with the journal of a run (the previous ids that the run stored) gives the users their old ids again, and the new ids become previous ids', async () => {
  const userId = await create('old_back');
  await move('old_back', 'new_back', { run: 'to undo' });
  const { lines } = await one.readJournal('to undo', { seconds: 0 });
  expect(lines).toEqual(linesOf(['new_back', 'old_back']));
  expect(await relink(lines, { run: 'undo' })).toEqual(MOVED);
  expect([await database.idsOf('old_back'), await database.idsOf('new_back')]).toEqual([[userId], []]);
  for (const id of ['old_back', 'new_back']) expect(await one.guard(id)).toBe(userId);
  expect((await one.readJournal('to undo', { seconds: 0 })).lines).toEqual([]);
  expect(await move('old_back', 'new_back')).toEqual(MOVED);
});

test.each(['read committed', 'repeatable read', 'serializable'])(
  'A registration during which another process links and moves the user returns the internal id of the user (isolation level %s)',
  async (isolation) => {
    const [oldId, newId] = [`old_race_${isolation}`, `new_race_${isolation}`];
    await database.alter(`SET default_transaction_isolation = '${isolation}'`);
    await one.closeDatabase();
    onTestFinished(async () => {
      await database.alter('RESET default_transaction_isolation');
      await one.closeDatabase();
    });
    const { insert, resume } = await pauseInserts(database);
    const registration = one.register(oldId);
    expect(await database.areBlocked(1)).toBe(true);
    await insert(oldId);
    const [userId] = await database.idsOf(oldId);
    expect(await move(oldId, newId)).toEqual(MOVED);
    await resume();
    expect(await registration).toEqual({ userId, created: false });
    expect([await database.idsOf(oldId), await database.idsOf(newId)]).toEqual([[], [userId]]);
  },
);

test('If a registration of the new id commits before the move, the run reports a collision', async () => {
  const userId = await create('old_late');
  const registration = await lockRow(database, 'new_late');
  const moving = move('old_late', 'new_late');
  expect(await registration.waiting(1)).toBe(true);
  await registration.commit();
  expect(await moving).toEqual({ moved: 0, already: 0, kinds: ['new id is linked to another internal id'] });
  expect(await database.idsOf('old_late')).toEqual([userId]);
});

test('If a registration of the new id waits for the move, the registration returns the internal id of the moved user', async () => {
  const userId = await create('old_first');
  const update = `UPDATE users SET identity_provider_user_id = 'new_first' WHERE id = $1`;
  const moving = await openTransaction(database, update, [userId]);
  const registration = one.register('new_first');
  expect(await moving.waiting(1)).toBe(true);
  await moving.commit();
  expect(await registration).toEqual({ userId, created: false });
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
      await holder.query('SELECT FROM users WHERE id = $1 FOR KEY SHARE', [first]);
      const moving = relink(lines);
      expect(await database.areBlocked(1)).toBe(true);
      await holder.query('SELECT FROM users WHERE id = $1 FOR KEY SHARE', [second]);
      await holder.query('COMMIT');
      expect(await moving).toEqual({ moved: 2, already: 0, kinds: [] });
    } finally {
      holder.release(true);
    }
    await relink(
      (await one.readJournal(RUN, { seconds: 0 })).lines.filter(({ newId }) => newId.startsWith('old_lock')),
    );
  }
  await database.alter('RESET deadlock_timeout');
  await other.closeDatabase();
});

test.each(['old_forget', 'new_forget'])(
  'The deletion of a moved user by one id forgets both ids: %s',
  async (id) => {
    const pair = [`${id}_old`, `${id}_new`] as const;
    const given = id === 'old_forget' ? pair[0] : pair[1];
    await create(pair[0]);
    await move(...pair);
    for (const each of pair) await one.guard(each);
    kv.takeCommands();
    expect(await one.forget(given)).toBe('forgotten');
    const keys = pair.map(cacheKey);
    const deleted = kv.takeCommands().map(([, ...words]) => [...new Set(words)].sort());
    expect(deleted).toEqual([keys.toSorted(), keys.toSorted(), keys.toSorted()]);
    for (const each of pair) {
      expect(await one.register(each)).toBeUndefined();
      expect([await database.idsOf(each), await kv.cachedId(each)]).toEqual([[], null]);
    }
    expect(await other.guard(pair[1], Date.now() / 1000 + 60)).toBeDefined();
  },
);

test('After a deletion that runs at the same time as a move, no id of the user has a row', async () => {
  const users = Array.from({ length: 20 }, (_, index) => index);
  for (const user of users) await create(`old_both_${user}`);
  await inParallel(5, users, async (user) => {
    const [oldId, newId] = [`old_both_${user}`, `new_both_${user}`];
    await Promise.all([move(oldId, newId), one.deleteLink(oldId, 30), one.register(oldId)]);
    const forgotten = await database.idsOf(oldId);
    expect([forgotten, await database.idsOf(newId), await one.register(oldId)]).toEqual([[], [], undefined]);
  });
});

test('A row that another transaction deletes during the move is not counted as moved', async () => {
  await create('old_deleted');
  const deletion = await openTransaction(
    database,
    `DELETE FROM users WHERE identity_provider_user_id = 'old_deleted'`,
  );
  const reasons: string[] = [];
  const retryOptions = { seconds: 20, onWait: (reason: string) => reasons.push(reason) };
  const moving = move('old_deleted', 'new_deleted', { retryOptions });
  expect(await deletion.waiting(1)).toBe(true);
  await deletion.commit();
  expect(await moving).toEqual({ moved: 0, already: 0, kinds: ['unknown old id'] });
  expect(reasons).toEqual(['Another transaction has changed a user']);
});

test('Users keep their internal ids if they are moved while two processes look up their old and new ids', async () => {
  const users = Array.from({ length: 400 }, (_, user) => [`old_live_${user}`, `new_live_${user}`] as const);
  await database.link(...users.map(([oldId]) => oldId));
  /** Returns the number and the internal id of each of these users. */
  const idsBy = async (prefix: string) => {
    const { rows } = await pool.query('SELECT identity_provider_user_id AS user, id FROM users');
    return new Map<string, string>(
      rows.flatMap(({ user, id }) => (user.startsWith(prefix) ? [[user.slice(prefix.length), id]] : [])),
    );
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
      const userId = index % 5 === 0 ? (await process.register(id))?.userId : await process.guard(id);
      if (userId !== before.get(oldId.slice(9))) wrong.push(`${id} ${userId}`);
    }
  });
  const lines = linesOf(...users);
  for await (const page of other.relink(lines, { run: RUN, days: 30, retryOptions: { seconds: 20 } }))
    moved += page.length;
  done = true;
  await traffic;
  expect([moved, wrong]).toEqual([400, []]);
  expect(await idsBy('new_live_')).toEqual(before);
});

test('If the cache does not respond, a run moves the users and then rejects', async () => {
  const userId = await create('old_uncached');
  await kv.proxy.treat('refuse');
  const options = { run: RUN, days: 30, retryOptions: { seconds: 0 } };
  await expect(other.relink(linesOf(['old_uncached', 'new_uncached']), options).next()).rejects.toThrow(
    'The cache does not respond',
  );
  expect(await database.idsOf('new_uncached')).toEqual([userId]);
});

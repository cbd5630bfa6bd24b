import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { openTransaction } from '../../../../tests/harness/dependencies/row-lock';
import type { LinkTable } from '../../src';
import {
  CLIENTS,
  calls,
  createUser,
  database,
  deleteUser,
  log,
  register,
  surroundings,
  type Transaction,
  visit,
} from './clients';

const { pool } = database;
afterEach(() => void vi.useRealTimers());

/** Runs a statement, and returns the first column. */
async function select(text: string, ...values: unknown[]): Promise<unknown[]> {
  return (await pool.query({ text, values, rowMode: 'array' })).rows.map(([value]) => value);
}
const idsOf = (clerkId: string) => select('SELECT id::text FROM "User" WHERE "clerkId" = $1', clerkId);
const INSERT = 'INSERT INTO "User" (email, "clerkId") VALUES ($1, $2) RETURNING id::text';
const insertRow = async (email: string, clerkId: string | null = null) =>
  (await select(INSERT, email, clerkId))[0];
const countLog = async () => Number((await select('SELECT count(*) FROM "Log"'))[0]);
const FAKE = { toFake: ['setTimeout' as const, 'clearTimeout' as const] };

describe.each(Object.entries(CLIENTS))('With %s', (_name, create) => {
  test('Twenty registrations in two processes make one row in one transaction, and run each function once', async () => {
    const { id } = createUser();
    const called = vi.fn();
    const tables = [1, 2].map(() =>
      create({
        async columns({ id: clerkId }, { verifiedEmail = '', transaction }) {
          called('columns', clerkId);
          await log(transaction);
          return { email: verifiedEmail };
        },
        async onInsert(userId, transaction, { origin }) {
          called('onInsert', userId, origin);
          await log(transaction);
        },
        onCreated: async (userId, { found, origin }) => called('onCreated', userId, origin, found?.id),
      }),
    );
    const before = await countLog();
    const lock = await openTransaction(database, 'LOCK TABLE "User" IN SHARE MODE');
    const insert = (table: LinkTable) => Array.from({ length: 10 }, () => table.insert(id, surroundings));
    const inserted = tables.flatMap(insert);
    // One process inserts, and the other waits for the lock of the id.
    expect(await database.areBlocked(2)).toBe(true);
    await lock.release();
    const rows = await Promise.all(inserted);
    const [userId] = await idsOf(id);
    expect(rows).toEqual(expect.arrayContaining([userId, ...Array(19).fill({ existing: userId })]));
    expect(rows.filter((row) => row === userId)).toHaveLength(1);
    expect(called.mock.calls).toEqual([
      ['columns', id],
      ['onInsert', userId, 'created'],
      ['onCreated', userId, 'created', id],
    ]);
    expect([await countLog(), calls(id)]).toEqual([before + 2, 2]);
  });

  test('A new user takes over a row from before the sign-up once, even if it is committed meanwhile, and the functions get the origin', async () => {
    const { id, email } = createUser();
    const called = vi.fn();
    const table = create({
      claim: 'email',
      columns: async (_user, { verifiedEmail = '' }) => ({ email: verifiedEmail }),
      onInsert: async (userId, _transaction, { origin }) => called(userId, origin),
    });
    const guest = await openTransaction(database, INSERT, [email, `guest_${id}`]);
    const registered = Promise.all([register(table, id), register(table, id)]);
    const isWaiting = await guest.waiting(1);
    await guest.commit();
    const [userId] = await select('SELECT id::text FROM "User" WHERE email = $1', email);
    const [first, second] = [true, false].map((created) => ({ userId, created }));
    expect([isWaiting, ...(await registered)]).toEqual(expect.arrayContaining([true, first, second]));
    expect(await register(table, id)).toEqual(second);
    expect([called.mock.calls, calls(id)]).toEqual([[[userId, 'claimed']], 1]);
  });

  test('A row that `where` excludes is not signed in or claimed, without a call to Clerk', async () => {
    const [excluded, other] = [createUser(), createUser()];
    const table = create({ claim: 'email', columns: async () => ({}) });
    const rows = [await insertRow(excluded.email, excluded.id), await insertRow(other.email)];
    await pool.query('UPDATE "User" SET "deletedAt" = now() WHERE id = ANY ($1)', [rows]);
    expect([await table.find(excluded.id), await register(table, excluded.id)]).toEqual([null, undefined]);
    expect(calls(excluded.id)).toBe(0);
    const registered = await register(table, other.id);
    expect([registered?.created, rows.includes(registered?.userId)]).toEqual([true, false]);
  });

  test('A user whom Clerk does not have gets no row, a verified session needs no call to Clerk, and an id of another form is an error', async () => {
    const [table, { id }] = [create({}), createUser()];
    const unknown = `user_${randomUUID()}`;
    expect(await register(table, unknown)).toBeUndefined();
    for (const other of ['', `org_${randomUUID()}`]) {
      await expect(register(table, other)).rejects.toThrow('Not an id of Clerk');
      expect(await idsOf(other)).toEqual([]);
    }
    expect(await idsOf(unknown)).toEqual([]);
    expect([await visit(table, id), calls(id)]).toEqual([expect.any(String), 0]);
    const atOnce = [table.insert(unknown, surroundings), visit(table, unknown)];
    expect(await Promise.all(atOnce)).toEqual([undefined, expect.any(String)]);
  });

  test('The row of a user whom Clerk no longer has is claimed only with claimDeleted, and that of another user never', async () => {
    const [old, current] = [createUser(), createUser()];
    const rows = [await insertRow(old.email, old.id), await insertRow(current.email, current.id)];
    deleteUser(old.id);
    const { id, email } = createUser([old.email, current.email]);
    const columns = async (_user: unknown, { verifiedEmail = email }) => ({ email: verifiedEmail });
    await expect(register(create({ claim: 'email', columns }), id)).rejects.toMatchObject({
      message: 'The row of a new user cannot be inserted',
      cause: { message: expect.stringContaining('email') },
    });
    const table = create({ claim: 'email', claimDeleted: true, columns });
    expect(await register(table, id)).toEqual({ userId: rows[0], created: true });
    expect(await idsOf(current.id)).toEqual([rows[1]]);
  });

  test('An address that is not verified claims no row, and is not passed to columns', async () => {
    const columns = vi.fn(async () => ({}));
    const table = create({ claim: 'email', columns });
    for (const status of ['unverified', 'expired', 'failed', 'transferable']) {
      const email = `${randomUUID()}@example.com`;
      const [guest, { id }] = [await insertRow(email), createUser([email], status)];
      expect((await register(table, id))?.userId).not.toBe(guest);
      const helpers = expect.objectContaining({ verifiedEmail: undefined });
      expect(columns).toHaveBeenLastCalledWith(expect.objectContaining({ id }), helpers);
    }
  });

  test('The primary address claims first, an exact spelling before another one, only ASCII letters are folded, and `_` is a letter', async () => {
    const emails = [`second_${randomUUID()}@example.com`, `k${randomUUID()}@example.com`];
    const [second = '', primary = ''] = emails;
    await insertRow(primary.replace('k', '\u212A'));
    await insertRow(second.replace('_', '-'));
    const ofSecond = await insertRow(second);
    const upper = await insertRow(primary.toUpperCase());
    const exact = await insertRow(primary);
    const table = create({ claim: 'email' });
    const claimed = [];
    for (const _user of [1, 2, 3, 4]) claimed.push((await register(table, createUser(emails).id))?.userId);
    expect(claimed).toEqual([exact, upper, ofSecond, expect.any(String)]);
    expect(await select('SELECT email FROM "User" WHERE id = $1', claimed[3])).toEqual([null]);
  });

  test('A row that another transaction takes between read and update is not claimed', async () => {
    const [{ id, email }, other] = [createUser(), createUser()];
    const guest = await insertRow(email);
    const take = 'UPDATE "User" SET "clerkId" = $1 WHERE id = $2';
    const lock = await openTransaction(database, take, [other.id, guest]);
    const registered = register(create({ claim: 'email' }), id);
    expect(await lock.waiting(1)).toBe(true);
    await lock.commit();
    expect((await registered)?.userId).not.toBe(guest);
    expect(await idsOf(other.id)).toEqual([guest]);
  });

  test('A process calls Clerk once in five seconds for a signed-in user without a row. register() calls it again, and its refusal does not count for a session', async () => {
    vi.useFakeTimers(FAKE);
    const { id } = createUser();
    const columns = vi.fn(async (): Promise<object | undefined> => undefined);
    const table = create({ columns });
    for (const expected of [1, 1, 2]) {
      if (expected === 2) await vi.advanceTimersByTimeAsync(5_000);
      expect([await visit(table, id), calls(id)]).toEqual([undefined, expected]);
      expect(await table.exists(id, { ...surroundings, isVerified: true })).toBe(false);
    }
    const { id: other } = createUser();
    expect(await register(table, other)).toBeUndefined();
    columns.mockResolvedValue({});
    expect(await visit(table, other)).toEqual(expect.any(String));
    expect(await register(table, id)).toMatchObject({ created: true });
  });

  test.each([
    ['hangs', 1],
    ['registers the same user', 2],
  ])('If onInsert %s, the transaction ends with the call, and its object is of no use', async (way, max) => {
    const { id } = createUser();
    let given: Transaction | undefined;
    const onInsert = async (_userId: string, transaction: Transaction) => {
      given = transaction;
      await (way === 'hangs' ? new Promise(() => undefined) : table.insert(id, surroundings));
    };
    const table: LinkTable = create({ onInsert }, max);
    const before = await countLog();
    vi.useFakeTimers(FAKE);
    const ended = table.insert(id, surroundings).catch((error: unknown) => error);
    await vi.waitUntil(() => given !== undefined);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await ended).toMatchObject({ name: 'TimeoutError' });
    await expect((async () => given && log(given))()).rejects.toThrow();
    const open =
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state ~ 'transaction'";
    expect([await select(open), await countLog()]).toEqual([[], before]);
    // Each connection of the pool is free.
    const found = await Promise.all(Array.from({ length: max }, () => table.find(id)));
    expect(found).toEqual(Array(max).fill(undefined));
  });

  test('Six new users at once are registered with a pool of two connections, although columns uses one of its own', async () => {
    const columns = async () => ((await table.find('user_other')) === null ? undefined : {});
    const table: LinkTable = create({ columns }, 2);
    const inserted = await Promise.all(Array.from({ length: 6 }, () => visit(table, createUser().id)));
    expect(inserted).toEqual(Array(6).fill(expect.any(String)));
  });

  test('In a database whose transactions are serializable by default, new users do not disturb each other', async () => {
    await database.alter("SET default_transaction_isolation = 'serializable'");
    const table = create({ claim: 'email', columns: async () => ({}) });
    const tables = [table, create({ claim: 'email' }), create({ claim: 'email' })];
    const inserted = await Promise.all(
      Array.from({ length: 21 }, (_, index) => visit(tables[index % 3] ?? table, createUser().id)),
    );
    await database.alter('RESET default_transaction_isolation');
    expect(inserted).toEqual(Array(21).fill(expect.any(String)));
  });

  test('A registration that loses a race in the database is repeated', async () => {
    await pool.query(`CREATE SEQUENCE attempts;
      CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('attempts') % 2 = 1 THEN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER lose BEFORE INSERT ON "User" FOR EACH ROW EXECUTE FUNCTION lose()`);
    for (const table of [create({}), create({ columns: async () => ({}) })])
      expect.soft(await register(table, createUser().id).catch(String)).toMatchObject({ created: true });
    await pool.query('DROP TRIGGER lose ON "User"; DROP FUNCTION lose; DROP SEQUENCE attempts');
  });

  test('A rehearsal rolls back, runs onInsert once, and rejects without a unique key', async () => {
    const { id } = createUser();
    const onInsert = vi.fn(async (_id: string, transaction: Transaction) => log(transaction));
    const table = create({ columns: async () => ({}), onInsert });
    const before = await countLog();
    expect(await table.rehearse?.(id, surroundings)).toBe(true);
    expect([await idsOf(id), await countLog()]).toEqual([[], before]);
    expect(onInsert).toHaveBeenCalledTimes(1);
    await pool.query('ALTER TABLE "User" DROP CONSTRAINT "User_clerkId_key"');
    await expect(table.rehearse?.(id, surroundings)).rejects.toThrow();
    await pool.query('ALTER TABLE "User" ADD UNIQUE ("clerkId")');
  });
});

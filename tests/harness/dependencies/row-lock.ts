import type { Kind } from '#lib/core/ports';
import { KINDS } from '#lib/ids/store';
import { waitUntil } from '../../../dev/system/processes';
import type { DatabaseAccess } from './database';

/** Runs a statement in a transaction that stays open. Its locks keep requests in flight for as long as a test needs. */
export async function openTransaction(database: DatabaseAccess, statement: string, values: unknown[] = []) {
  const holder = await database.pool.connect();
  await holder.query('BEGIN');
  await holder.query(statement, values);
  const { rows } = await holder.query('SELECT pg_backend_pid() AS pid');
  let ended: Promise<void> | undefined;
  const end = async (command: string) => {
    try {
      await holder.query(command);
    } finally {
      // Closing the connection also ends a transaction that a failed command left open.
      holder.release(true);
    }
  };
  return {
    /** Resolves to true once at least this number of inserts wait, or to false at the timeout. */
    waiting: (inserts: number, milliseconds = 10_000) =>
      waitUntil(async () => {
        const { rowCount } = await database.pool.query(
          'SELECT 1 FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid))',
          [rows[0]?.pid],
        );
        return (rowCount ?? 0) >= inserts;
      }, milliseconds),
    /** Releases the waiting inserts. Further calls have no effect. */
    release() {
      ended ??= end('ROLLBACK');
      return ended;
    },
    /** Commits the transaction instead of rolling it back. Waiting inserts of the same users then conflict with its rows. */
    commit() {
      ended ??= end('COMMIT');
      return ended;
    },
  };
}

/** Blocks every insert of this user or tenant. Inserts a row with the same id and leaves the transaction open. */
export function lockRow(database: DatabaseAccess, providerId: string, kind: Kind = 'user') {
  const { table, column } = KINDS[kind];
  const insert = `INSERT INTO ${table} (id, ${column}) VALUES (gen_random_uuid(), $1)`;
  return openTransaction(database, insert, [providerId]);
}

/** Blocks every insert into the table of a kind. Reads are not blocked. */
export function lockInserts(database: DatabaseAccess, kind: Kind = 'user') {
  return openTransaction(database, `LOCK TABLE ${KINDS[kind].table} IN SHARE MODE`);
}

/** Makes every insert of a user or tenant wait before it locks a row, except those of `insert`. */
export async function pauseInserts({ pool }: DatabaseAccess, kind: Kind = 'user') {
  const { table, column } = KINDS[kind];
  await pool.query(`
    CREATE FUNCTION pause_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END $$;
    CREATE TRIGGER pause_insert BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION pause_insert()`);
  const holder = await pool.connect();
  await holder.query('SELECT pg_advisory_lock(1)');
  return {
    insert: (providerId: string) =>
      holder.query(`INSERT INTO ${table} (id, ${column}) VALUES (gen_random_uuid(), $1)`, [providerId]),
    /** Resumes the waiting inserts. */
    async resume() {
      holder.release(true);
      await pool.query('DROP FUNCTION pause_insert CASCADE');
    },
  };
}

import { waitUntil } from '../../../dev/system/processes';
import type { TestDatabase } from './database';

/** A database lock that keeps requests in flight for as long as a test needs. */
export interface RowLock {
  /** Resolves to true once at least this number of inserts wait, or to false at the timeout (default: 10 s). */
  waiting(inserts: number, milliseconds?: number): Promise<boolean>;
  /** Releases the waiting inserts. Further calls have no effect. */
  release(): Promise<void>;
  /**
   * Releases the inserts once two of them wait, or once one insert has waited for 1 s. Rejects if no insert waits within
   * 10 s. The check runs inside the database. If a busy test process checked the inserts, they could reach the query
   * timeout of the service (3 s) before the test releases them.
   */
  releaseOnceContended(): Promise<void>;
  /**
   * Commits the transaction of the lock instead of rolling it back. Waiting inserts of the same users then conflict with the
   * committed rows.
   */
  commit(): Promise<void>;
}

/**
 * Statement that returns once two inserts wait for this transaction, or once one insert has waited for 1 s. Fails if no
 * insert waits within 10 s.
 */
const UNTIL_CONTENDED = `
  DO $$
  DECLARE
    inserts bigint;
    since timestamptz;
  BEGIN
    FOR attempt IN 1..1000 LOOP
      SELECT count(*) INTO inserts FROM pg_locks
      WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid));
      since := CASE WHEN inserts > 0 THEN coalesce(since, clock_timestamp()) END;
      EXIT WHEN inserts > 1 OR clock_timestamp() > since + interval '1 second';
      PERFORM pg_sleep(0.01);
    END LOOP;
    ASSERT inserts > 0, 'no insert waits for the lock';
  END $$`;

async function lock(database: TestDatabase, statement: string, values: unknown[]): Promise<RowLock> {
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
    waiting: (inserts, milliseconds = 10_000) =>
      waitUntil(async () => {
        const { rowCount } = await database.pool.query(
          'SELECT 1 FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid))',
          [rows[0]?.pid],
        );
        return (rowCount ?? 0) >= inserts;
      }, milliseconds),
    release() {
      ended ??= end('ROLLBACK');
      return ended;
    },
    releaseOnceContended() {
      ended ??= end(`${UNTIL_CONTENDED}; ROLLBACK`);
      return ended;
    },
    commit() {
      ended ??= end('COMMIT');
      return ended;
    },
  };
}

/** Blocks every insert of these users. Inserts rows with the same identity-provider ids and leaves the transaction open. */
export function lockRow(database: TestDatabase, ...identityProviderUserIds: string[]): Promise<RowLock> {
  const insert =
    'INSERT INTO users (id, identity_provider_user_id) SELECT gen_random_uuid(), unnest($1::text[])';
  return lock(database, insert, [identityProviderUserIds]);
}

/** Blocks every insert into the table `users`. Reads are not blocked. */
export function lockInserts(database: TestDatabase): Promise<RowLock> {
  return lock(database, 'LOCK TABLE users IN SHARE MODE', []);
}

/** Blocks every statement that uses the table `users`. */
export function lockTable(database: TestDatabase): Promise<RowLock> {
  return lock(database, 'LOCK TABLE users IN ACCESS EXCLUSIVE MODE', []);
}

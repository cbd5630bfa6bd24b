import { waitUntil } from '../../../dev/system/processes';
import type { TestDatabase } from './database';

/** What keeps inserts waiting, so that requests are under way for as long as a test needs. */
export interface Hold {
  /** Resolves to true once at least so many inserts wait, to false when they do not in time. */
  waiting(inserts: number, milliseconds?: number): Promise<boolean>;
  /** Lets the waiting inserts go on. Twice is once. */
  release(): Promise<void>;
  /**
   * Lets them go on once two wait, or one has for a second; rejects if none does in time. The database sees to it: however
   * busy this process is, no insert waits for as long as a query may.
   */
  releaseOnceContended(): Promise<void>;
  /** Instead: makes what was inserted here stay, so that the waiting inserts find that another was first. */
  commit(): Promise<void>;
}

/** Returns once two inserts wait for this transaction, or one has for a second; fails if none does in 10 s. */
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
    ASSERT inserts > 0, 'no insert is held back';
  END $$`;

async function hold(database: TestDatabase, statement: string, values: unknown[]): Promise<Hold> {
  const holder = await database.pool.connect();
  await holder.query('BEGIN');
  await holder.query(statement, values);
  const { rows } = await holder.query('SELECT pg_backend_pid() AS pid');
  let ended: Promise<void> | undefined;
  const end = async (command: string) => {
    try {
      await holder.query(command);
    } finally {
      // Ends the connection, and with it a transaction that a failed command left open.
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

/** Holds every insert of these users back, by uncommitted rows. */
export function holdRow(database: TestDatabase, ...identityProviderUserIds: string[]): Promise<Hold> {
  const insert =
    'INSERT INTO users (id, identity_provider_user_id) SELECT gen_random_uuid(), unnest($1::text[])';
  return hold(database, insert, [identityProviderUserIds]);
}

/** Holds every insert of any user back. Users are still found. */
export function holdInserts(database: TestDatabase): Promise<Hold> {
  return hold(database, 'LOCK TABLE users IN SHARE MODE', []);
}

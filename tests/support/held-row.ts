import { Client } from 'pg';
import { waitUntil } from '../../dev/processes';
import type { TestDatabase } from './database';

/** An uncommitted row of a user: every other insert of that user waits until it is let go. */
export interface HeldRow {
  /** Resolves to true once at least so many inserts wait, to false when they do not in time. */
  waiting(inserts: number, milliseconds?: number): Promise<boolean>;
  /** Lets the waiting inserts go on; the row was never there. Twice is once. */
  release(): Promise<void>;
}

/** Holds every insert of a user back, so that a request for it is under way for as long as a test needs. */
export async function holdRow(database: TestDatabase, identityProviderUserId: string): Promise<HeldRow> {
  // No client of the pool, which a test that fails half-way could then not end.
  const holder = new Client({ connectionString: database.pool.options.connectionString });
  holder.on('error', () => undefined);
  await holder.connect();
  await holder.query('BEGIN');
  await holder.query('INSERT INTO users (id, identity_provider_user_id) VALUES (gen_random_uuid(), $1)', [
    identityProviderUserId,
  ]);
  const { rows } = await holder.query('SELECT pg_backend_pid() AS pid');
  let released: Promise<void> | undefined;
  const release = async () => {
    await holder.query('ROLLBACK');
    await holder.end();
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
      released ??= release();
      return released;
    },
  };
}

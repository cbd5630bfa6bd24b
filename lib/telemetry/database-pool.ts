import { processState } from '../process-state';

/** Counts of a `pg` connection pool: all connections, idle connections, and requests that wait for a connection. */
interface PoolCounts {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
}

/** The database pool whose counts the metrics report. lib/storage/database.ts sets it before the first statement. */
export const databasePool = processState('database-pool', (): { current?: PoolCounts | undefined } => ({}));

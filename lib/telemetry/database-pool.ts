import { processState } from '../process-state';

/** Numbers of all connections, idle connections and waiting statements of a connection pool of the `pg` library. */
interface PoolCounts {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
}

/** The database pool whose counts the metrics report. lib/storage/database.ts sets it before the first statement. */
export const databasePool = processState('database-pool', (): { current?: PoolCounts | undefined } => ({}));

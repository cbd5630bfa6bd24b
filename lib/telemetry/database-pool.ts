import { processState } from '../process-state';

/** The counts of a `pg` pool. */
interface PoolCounts {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
}

/** The database pool of this process, for the metrics. lib/storage/database.ts sets it with the first statement. */
export const databasePool = processState('database-pool', (): { current?: PoolCounts | undefined } => ({}));

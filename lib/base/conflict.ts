import { sqlStateOf } from './errors';

/**
 * SQLSTATEs of a statement that lost a race against another transaction: `40001` serialization failure, `40P01` deadlock,
 * `23505` unique violation. An insert with ON CONFLICT can get a `23505` while REINDEX CONCURRENTLY rebuilds the unique index,
 * or from a trigger.
 */
const RETRYABLE: ReadonlySet<string | undefined> = new Set(['40001', '40P01', '23505']);
const MAX_ATTEMPTS = 5;

/**
 * Calls `work`, and calls it again if it lost a race against another transaction, up to five times in total. Does not pause,
 * because the next call sees what the other transaction committed, or waits in the database until that transaction ends.
 */
export async function retryOnConflict<T>(work: () => Promise<T>, attempt = 1): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (attempt === MAX_ATTEMPTS || !RETRYABLE.has(sqlStateOf(error))) throw error;
    return retryOnConflict(work, attempt + 1);
  }
}

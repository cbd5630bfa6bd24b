import { retryLostRace } from '../core/async';
import { sqlStateOf } from './errors';

/**
 * SQLSTATEs of a statement that lost a race against another transaction: `40001` serialization failure, `40P01` deadlock,
 * `23505` unique violation. An insert with ON CONFLICT can get a `23505` while REINDEX CONCURRENTLY rebuilds the unique index,
 * or from a trigger.
 */
const RETRYABLE: ReadonlySet<string | undefined> = new Set(['40001', '40P01', '23505']);
/** Returns true for the error of a statement that lost a race, so that the next one sees what the other has committed. */
export const isLostRace = (error: unknown): boolean => RETRYABLE.has(sqlStateOf(error));

/** Calls `work` and repeats the call as `retryLostRace` does. */
export const retryOnConflict = <T>(work: () => Promise<T>): Promise<T> => retryLostRace(isLostRace, work);

import { type RetryOptions, retry, TransientError } from '../concurrency/retry';
import { describeError } from '../errors/describe-error';

/** SQLSTATEs and Prisma codes of permanent errors, such as rejected credentials, a missing table, or the error of a trigger. */
const PERMANENT = /^(?:23|28|3D|42|P0001|P1000|P1003|P1010|P2021|P2022)/;

/**
 * Passes the result of `work` through. Converts a database error to an error whose message contains no value of a row. A
 * permanent error becomes an Error. Any other error becomes a TransientError, because a failover or a busy pool does not last.
 */
export async function asTransientError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof TransientError) throw error;
    const { name, code, sqlState } = describeError(error);
    const reason = sqlState ?? code ?? name;
    if (reason === '42501') throw new Error('The database role lacks a privilege (42501)');
    if (PERMANENT.test(reason)) throw new Error(`The database rejected the statement (${reason})`);
    throw new TransientError(`The database failed (${reason})`);
  }
}

/** Repeats `work` while it fails with a database error that is not permanent. */
export const retryDatabase = <T>(options: RetryOptions, work: () => Promise<T>): Promise<T> =>
  retry(options, () => asTransientError(work()));

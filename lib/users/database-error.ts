import { TransientError } from '../concurrency/retry';
import { describeError } from '../errors/describe-error';

/** Wrong credentials, no such database, no right to do this, no such table or unique key: waiting changes nothing. */
const LASTING = /^(?:28|3D|42|P1000|P1003|P1010|P2021|P2022)/;

/**
 * What the work comes to. What the database throws becomes an error in words without a value of a row: a TransientError, for
 * a failover ends and a pool is free again, unless waiting cannot help.
 */
export async function asTransientError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const { name, code, sqlState } = describeError(error);
    const said = sqlState ?? code ?? name;
    if (said === '42501') throw new Error("The database's role may not do this (42501)");
    if (LASTING.test(said)) throw new Error(`The database refuses (${said})`);
    throw new TransientError(`the database fails (${said})`);
  }
}

import { fieldsOf } from '../core/values';

/** SQLSTATEs that belong to error codes of Prisma. */
const OF_PRISMA: ReadonlyMap<unknown, string> = new Map([
  ['P2002', '23505'],
  ['P2003', '23503'],
  ['P2034', '40001'],
]);

/** Returns the SQLSTATE (such as 42501) of the database error behind an error of Prisma, or undefined if there is none. */
export function sqlStateOf(error: unknown): string | undefined {
  const { code: prismaCode, meta } = fieldsOf(error);
  const { driverAdapterError = error, code: metaCode } = fieldsOf(meta);
  const { originalCode } = fieldsOf(fieldsOf(driverAdapterError)['cause']);
  const code = originalCode ?? metaCode ?? OF_PRISMA.get(prismaCode);
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/**
 * SQLSTATEs of a statement that lost a race against another transaction: `40001` serialization failure, `40P01` deadlock,
 * `23505` unique violation. An insert with ON CONFLICT can get a `23505` while REINDEX CONCURRENTLY rebuilds the unique index,
 * or from a trigger.
 */
const RETRYABLE: ReadonlySet<string | undefined> = new Set(['40001', '40P01', '23505']);

/** Returns true for the error of a statement that lost a race, so that the next one sees what the other has committed. */
export const isLostRace = (error: unknown): boolean => RETRYABLE.has(sqlStateOf(error));

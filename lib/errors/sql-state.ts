const property = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;

/** Returns the SQLSTATE (such as 42501) of the database error behind a Prisma error, or undefined if there is none. */
export function sqlStateOf(error: unknown): string | undefined {
  const driverError = property(property(error, 'meta'), 'driverAdapterError');
  const code = property(property(driverError, 'cause'), 'originalCode');
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/**
 * SQLSTATEs of a statement that lost a race against another transaction: `40001` serialization failure, `40P01` deadlock,
 * `23505` unique violation. An insert with ON CONFLICT can get a `23505` while REINDEX CONCURRENTLY rebuilds the unique index,
 * or from a trigger of the identity-link service.
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

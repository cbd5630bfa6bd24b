const property = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;

/** SQLSTATEs that belong to error codes of Prisma. */
const OF_PRISMA: ReadonlyMap<unknown, string> = new Map([
  ['P2002', '23505'],
  ['P2003', '23503'],
  ['P2034', '40001'],
]);

/** Returns the SQLSTATE (such as 42501) of the database error behind an error of Prisma, or undefined if there is none. */
export function sqlStateOf(error: unknown): string | undefined {
  const meta = property(error, 'meta');
  const driverError = property(meta, 'driverAdapterError') ?? error;
  const code =
    property(property(driverError, 'cause'), 'originalCode') ??
    property(meta, 'code') ??
    OF_PRISMA.get(property(error, 'code'));
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

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

/** Rejects with a TimeoutError if `work` does not settle in time. Does not cancel `work`. */
export async function withTimeout<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(Object.assign(new Error('Timed out'), { name: 'TimeoutError' })),
      milliseconds,
    );
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

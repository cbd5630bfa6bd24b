// Copied from lib/concurrency/with-timeout.ts, lib/errors/sql-state.ts, lib/linking/links.ts of identity-link.
import * as z from 'zod/mini';

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

const FromPostgres = z.object({
  meta: z.object({
    driverAdapterError: z.object({
      cause: z.object({ originalCode: z.string().check(z.regex(/^[0-9A-Z]{5}$/)) }),
    }),
  }),
});

/** Returns the SQLSTATE (such as 42501) of the database error behind a Prisma error, or undefined if there is none. */
export function sqlStateOf(error: unknown): string | undefined {
  return FromPostgres.safeParse(error).data?.meta.driverAdapterError.cause.originalCode;
}

/**
 * SQLSTATEs of a statement that lost a race against another transaction: `40001` serialization failure, `40P01` deadlock,
 * `23505` unique violation. An insert with ON CONFLICT can get a `23505` while REINDEX CONCURRENTLY rebuilds the unique index.
 * In the identity-link service, a trigger also raises `23505` if `users:relink` has just replaced the inserted id.
 */
const RETRYABLE_SQLSTATES: ReadonlySet<string | undefined> = new Set(['40001', '40P01', '23505']);
const MAX_ATTEMPTS = 5;

/**
 * Calls `work`, and calls it again if it lost a race against another transaction, up to five times in total. Does not
 * pause, because the next call sees what the other transaction committed, or waits in the database until that transaction ends.
 */
export async function retryOnConflict<T>(work: () => Promise<T>, attempt = 1): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (attempt === MAX_ATTEMPTS || !RETRYABLE_SQLSTATES.has(sqlStateOf(error))) throw error;
    return retryOnConflict(work, attempt + 1);
  }
}

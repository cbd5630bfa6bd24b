import * as z from 'zod/mini';
import { sqlStateOf } from '../base/sql-state';
import { HttpError } from '../core/error';

/** SQLSTATEs of a violated unique key and of a violated exclusion constraint, such as one that prevents overlapping bookings. */
const CONFLICTS: ReadonlySet<string | undefined> = new Set(['23505', '23P01']);
const FOREIGN_KEY_VIOLATION = '23503';
const NoRow = z.object({ code: z.literal('P2025') });

/** Messages of the 409 and 404 responses that replace Prisma errors. Clients can read the messages. */
export interface ConstraintMessages {
  /** Message of the 409 if a row with the same unique key exists or if an exclusion constraint is violated. */
  readonly conflict?: string;
  /**
   * Message of the 404 if the row does not exist (P2025) or a foreign key is violated: the row that an insert refers to does not
   * exist, or another row refers to the deleted one.
   */
  readonly notFound?: string;
}

/**
 * Returns the result of a Prisma query. Rejects with an HttpError 409 if a unique key or an exclusion constraint is violated.
 * Rejects with an HttpError 404 if the row does not exist or if a foreign key is violated (see `notFound`). Passes all other
 * errors through, and the route responds to them with a 500.
 */
export async function withConstraintErrors<T>(
  query: PromiseLike<T>,
  { conflict = 'Already exists', notFound = 'Not found' }: ConstraintMessages = {},
): Promise<T> {
  try {
    return await query;
  } catch (error) {
    const state = sqlStateOf(error);
    if (CONFLICTS.has(state)) throw new HttpError(409, conflict);
    if (state === FOREIGN_KEY_VIOLATION || NoRow.safeParse(error).success) throw new HttpError(404, notFound);
    throw error;
  }
}

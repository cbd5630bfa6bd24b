import * as z from 'zod/mini';
import { sqlStateOf } from '../errors/sql-state';
import { HttpError } from '../http/error';

/** SQLSTATE of a violated exclusion constraint, such as one that prevents overlapping bookings. */
const EXCLUSION_VIOLATION = '23P01';
const ConstraintError = z.object({ code: z.enum(['P2002', 'P2003', 'P2025']) });

/** Messages of the 409 and 404 responses that replace Prisma errors. Clients can read the messages. */
export interface ConstraintMessages {
  /** Message of the 409 if a unique key exists (P2002) or an exclusion constraint is violated. */
  readonly conflict?: string;
  /** Message of the 404 if the row (P2025) or the target of its foreign key (P2003) does not exist. */
  readonly notFound?: string;
}

/**
 * Returns the result of a Prisma query. Throws an HttpError 409 for a violated unique key or exclusion constraint, and 404
 * for a missing row or target of a foreign key. Passes all other errors through. The route then responds with a 500.
 */
export async function withConstraintErrors<T>(
  query: PromiseLike<T>,
  { conflict = 'Already exists', notFound = 'Not found' }: ConstraintMessages = {},
): Promise<T> {
  try {
    return await query;
  } catch (error) {
    const code = ConstraintError.safeParse(error).data?.code;
    if (code === 'P2002' || sqlStateOf(error) === EXCLUSION_VIOLATION) throw new HttpError(409, conflict);
    throw code === undefined ? error : new HttpError(404, notFound);
  }
}

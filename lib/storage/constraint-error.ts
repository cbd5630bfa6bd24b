import * as z from 'zod/mini';
import { sqlStateOf } from '../concurrency/attempts';
import { HttpError } from '../http/error';

/** SQLSTATE of a violated exclusion constraint, such as one that prevents overlapping bookings. */
const EXCLUSION_VIOLATION = '23P01';
const ConstraintError = z.object({ code: z.enum(['P2002', 'P2003', 'P2025']) });

/** Messages of the 409 and 404 responses that replace Prisma errors. Clients can read the messages. */
export interface ConstraintMessages {
  /** Message of the 409 if a row with the same unique key exists (P2002) or if an exclusion constraint is violated. */
  readonly conflict?: string;
  /**
   * Message of the 404 if the row does not exist (P2025) or a foreign key is violated (P2003). An insert or an update violates
   * a foreign key if the row that it refers to does not exist. A deletion violates a foreign key with ON DELETE RESTRICT or
   * NO ACTION if another row still refers to the deleted row.
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
    const code = ConstraintError.safeParse(error).data?.code;
    if (code === 'P2002' || sqlStateOf(error) === EXCLUSION_VIOLATION) throw new HttpError(409, conflict);
    throw code === undefined ? error : new HttpError(404, notFound);
  }
}

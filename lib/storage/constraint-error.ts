import * as z from 'zod/mini';
import { HttpError } from '../http/error';

const ConstraintError = z.object({ code: z.enum(['P2002', 'P2003', 'P2025']) });

/** Messages of the 409 and 404 responses that replace Prisma errors. Clients can read the messages. */
export interface ConstraintMessages {
  /** Message of the 409 if the unique key already exists (P2002). */
  readonly conflict?: string;
  /** Message of the 404 if the row (P2025) or the target of its foreign key (P2003) does not exist. */
  readonly notFound?: string;
}

/**
 * Returns the result of a Prisma query. Throws an HttpError 409 or 404 instead of the Prisma errors P2002, P2003 and P2025.
 * Passes all other errors through. The route then responds with a 500.
 */
export async function withConstraintErrors<T>(
  query: PromiseLike<T>,
  { conflict = 'Already exists', notFound = 'Not found' }: ConstraintMessages = {},
): Promise<T> {
  try {
    return await query;
  } catch (error) {
    const code = ConstraintError.safeParse(error).data?.code;
    if (code === undefined) throw error;
    throw code === 'P2002' ? new HttpError(409, conflict) : new HttpError(404, notFound);
  }
}

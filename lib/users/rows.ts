import * as z from 'zod/mini';
import { storeForgotten } from '../linking/forgotten';
import { retryOnConflict } from '../linking/links';
import { database } from '../storage/database';
import { asTransientError } from './database-error';

/** A row of `users`. */
export interface Link {
  readonly userId: string;
  readonly identityProviderUserId: string;
}

interface Row {
  readonly id: string;
  readonly identityProviderUserId: string;
}

const linkOf = ({ id, identityProviderUserId }: Row): Link => ({ userId: id, identityProviderUserId });

/** Returns up to `limit` rows after an internal id, in the order of the ids. Without an id, starts at the first row. */
export async function linksAfter(userId: string | undefined, limit: number): Promise<Link[]> {
  const rows = await asTransientError(
    database().user.findMany({
      ...(userId === undefined ? {} : { where: { id: { gt: userId } } }),
      orderBy: { id: 'asc' },
      take: limit,
    }),
  );
  return rows.map(linkOf);
}

/**
 * Returns the rows with this internal or identity-provider user id. There are two rows if the id is the internal id of one
 * user and the identity-provider user id of another user.
 */
export async function findLinks(eitherId: string): Promise<Link[]> {
  const internal = z.guid().safeParse(eitherId);
  const rows = await asTransientError(
    database().user.findMany({
      where: {
        OR: [{ identityProviderUserId: eitherId }, ...(internal.success ? [{ id: internal.data }] : [])],
      },
      take: 2,
    }),
  );
  return rows.map(linkOf);
}

/** Prisma's error for the deletion of a row that another table refers to without ON DELETE CASCADE or SET NULL. */
const ForeignKeyViolation = z.object({ code: z.literal('P2003') });

/**
 * Time limits in milliseconds: `maxWait` to get a connection, which may have to start a suspended database, and `timeout` for
 * the transaction. At READ COMMITTED, the deletion sees a row that was committed while `storeForgotten` waited for its lock.
 */
const TRANSACTION = { maxWait: 7_000, timeout: 8_000, isolationLevel: 'ReadCommitted' } as const;

/**
 * Deletes the row of a user, if there is one, and the rows that refer to it by ON DELETE CASCADE. In the same transaction,
 * stores that the user is forgotten: for `days` days, only a newer session token can link the user again
 * (lib/linking/forgotten.ts). Returns `referenced` without a change if a foreign key without ON DELETE CASCADE or SET NULL
 * refers to the row. Only operators' commands call this function. The database role of the service may not delete rows.
 */
export async function deleteLink(
  identityProviderUserId: string,
  days: number,
): Promise<'deleted' | 'referenced'> {
  const deleting = retryOnConflict(() =>
    database().$transaction(async (transaction) => {
      await storeForgotten(transaction, identityProviderUserId, days);
      await transaction.user.deleteMany({ where: { identityProviderUserId } });
    }, TRANSACTION),
  );
  return asTransientError(
    deleting.then(
      () => 'deleted',
      (error: unknown) => {
        if (ForeignKeyViolation.safeParse(error).success) return 'referenced';
        throw error;
      },
    ),
  );
}

import * as z from 'zod/mini';
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

/** Rows in the order of their internal ids, from behind one on. */
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

/** The row of an internal or an identity-provider user id. Two, if the id of one user is the other id of another. */
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

/** What another table says of a row that it refers to by a foreign key without ON DELETE CASCADE or SET NULL. */
const StillReferredTo = z.object({ code: z.literal('P2003') });

/**
 * Deletes the row of a link, and what refers to it as its foreign key says. `refused`: a foreign key forbids it, and
 * nothing is deleted. `gone`: there is no such row. The role of the service need not be able to do this.
 */
export async function deleteLink({
  userId,
  identityProviderUserId,
}: Link): Promise<'deleted' | 'refused' | 'gone'> {
  const deleting = database().user.deleteMany({ where: { id: userId, identityProviderUserId } });
  return asTransientError(
    deleting.then(
      ({ count }) => (count === 1 ? 'deleted' : 'gone'),
      (error: unknown) => {
        if (StillReferredTo.safeParse(error).success) return 'refused';
        throw error;
      },
    ),
  );
}

import { TransientError } from '../concurrency/retry';
import { forgottenUntil } from '../linking/forgotten';
import { readCachedUserId } from '../linking/user-id-cache';
import { database } from '../storage/database';
import { asTransientError } from './database-error';
import { deletionDueAt } from './pending-deletions';
import { allIdsOf, type Link } from './rows';

/** The ids of a user. `userId` is undefined if the user is not linked (has no row in `users`). */
export interface ExportedUser {
  readonly userId: string | undefined;
  readonly identityProviderUserId: string;
  /** Ids that the user had at the provider before `users:relink`, and the times until which the service accepts them. */
  readonly previousIds: Link['previousIds'];
}

/**
 * Returns the rows of a user in the tables that an application adds to the database. events/export-user.ts implements this
 * type. The result must be serializable as JSON.
 */
export type ExportUser = (user: ExportedUser) => Promise<Readonly<Record<string, unknown>>>;

/**
 * Returns all data of a user: the link, the previous ids, the cached id, the expiry of the user's entry in `forgotten_users`
 * (if an operator has deleted the user), the time of a pending deletion, the rows of `webhook_subjects` (the time of the newest
 * handled webhook event) for each id, and the result of `exportOwn`. Changes nothing. Rejects if some of these data cannot be
 * read.
 */
export async function exportUser(user: ExportedUser, exportOwn: ExportUser): Promise<object> {
  const { userId = null, identityProviderUserId, previousIds } = user;
  const cached = await readCachedUserId(identityProviderUserId);
  if (cached.outcome === 'error') throw new TransientError('The cache does not respond');
  const until = (await asTransientError(forgottenUntil([identityProviderUserId]))).get(
    identityProviderUserId,
  );
  const subjects = await asTransientError(
    database().webhookSubject.findMany({
      where: { id: { in: [...allIdsOf(user), ...(userId === null ? [] : [userId])] } },
    }),
  );
  return {
    link: { userId, identityProviderUserId },
    previousIds,
    cachedUserId: cached.outcome === 'hit' ? cached.userId : null,
    forgottenUntil: until === undefined ? null : new Date(until),
    deletionDueAt: (await deletionDueAt(identityProviderUserId)) ?? null,
    webhookSubjects: subjects.map((row) => ({ ...row, appliedTime: new Date(Number(row.appliedTime)) })),
    ownTables: await exportOwn(user),
  };
}

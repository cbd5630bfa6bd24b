import * as z from 'zod/mini';
import { TransientError } from '../base/transient-error';
import { readCachedId } from '../linking/id-cache';
import { forgottenUntil } from '../linking/links';
import { database } from '../storage/database';
import { deletionDueAt } from './pending-deletions';
import { allIdsOf, type Link, Time } from './rows';

/** The ids of a user. `userId` is undefined if the user is not linked (has no row in `users`). */
export interface ExportedUser extends Omit<Link, 'userId'> {
  readonly userId: string | undefined;
}

/**
 * Returns the rows of a user in the tables that an application adds to the database. events/export-user.ts implements this
 * type. The result must be serializable as JSON.
 */
export type ExportUser = (user: ExportedUser) => Promise<Readonly<Record<string, unknown>>>;

const Subjects = z.array(z.object({ id: z.string(), appliedTime: Time, receivedAt: Time }));

/** Returns all data of a user, and the result of `exportOwn`. Changes nothing. Rejects if some data cannot be read. */
export async function exportUser(user: ExportedUser, exportOwn: ExportUser): Promise<object> {
  const { userId = null, identityProviderUserId, previousIds } = user;
  const cached = await readCachedId('user', identityProviderUserId);
  if (cached.outcome === 'error') throw new TransientError('The cache does not respond');
  const forgotten = await forgottenUntil([identityProviderUserId]);
  const until = forgotten.get(identityProviderUserId);
  const ids = allIdsOf(user);
  const subjects = await database().$queryRaw`
    SELECT id, applied_time::float8 AS "appliedTime", (extract(epoch FROM received_at) * 1000)::float8 AS "receivedAt"
    FROM public.webhook_subjects WHERE id = ANY (${[...ids, userId]}::text[])`;
  return {
    link: { userId, identityProviderUserId },
    previousIds,
    cachedUserId: cached.outcome === 'hit' ? cached.id : null,
    forgottenUntil: until === undefined ? null : new Date(until),
    deletionDueAt: await deletionDueAt(ids),
    webhookSubjects: Subjects.parse(subjects),
    ownTables: await exportOwn(user),
  };
}

import * as z from 'zod/mini';
import { TransientError } from '../base/errors';
import { readCachedId } from '../ids/cache';
import { forgottenUntil } from '../ids/store';
import { database } from '../storage/database';
import type { ExportUser } from '../tables/export-user';
import { deletionDueAt } from './pending-deletions';
import { allIdsOf, type LinkRow, Time } from './rows';

const Subjects = z.array(z.object({ id: z.string(), appliedTime: Time, receivedAt: Time }));

/** Returns all data of a user, with the result of `exportOwn`. `link` is its row, if there is one. Changes nothing. */
export async function exportUser(
  providerId: string,
  link: LinkRow | undefined,
  exportOwn: ExportUser,
): Promise<object> {
  const cached = await readCachedId('user', providerId);
  if (cached.outcome === 'error') throw new TransientError('The cache does not respond');
  const forgotten = await forgottenUntil('user', [providerId]);
  const until = forgotten.get(providerId);
  const ids = link ? allIdsOf(link) : [providerId];
  const userId = link?.internalId;
  const previousIds = (link?.previousIds ?? []).map(({ providerId: identityProviderUserId, expiresAt }) => ({
    identityProviderUserId,
    expiresAt,
  }));
  const subjects = await database().$queryRaw`
    SELECT id, applied_time::float8 AS "appliedTime", (extract(epoch FROM received_at) * 1000)::float8 AS "receivedAt"
    FROM public.webhook_subjects WHERE id = ANY (${[...ids, userId ?? null]}::text[])`;
  return {
    link: { userId: userId ?? null, identityProviderUserId: providerId },
    previousIds,
    cachedUserId: cached.outcome === 'hit' ? cached.id : null,
    forgottenUntil: until === undefined ? null : new Date(until),
    deletionDueAt: await deletionDueAt('user', ids),
    webhookSubjects: Subjects.parse(subjects),
    ownTables: await exportOwn({ userId, identityProviderUserId: providerId, previousIds }),
  };
}

import * as z from 'zod/mini';
import { database, type Transaction } from '../storage/database';
import { Time } from './rows';

/**
 * Schedules the deletion of a user, which lib/users/forget-due.ts runs after `hours` hours. A later call for the same user
 * restarts this period. Does not check that the user is linked, because a late `user.created` event can still link the user.
 */
export async function scheduleDeletion(
  transaction: Transaction,
  identityProviderUserId: string,
  hours: number,
): Promise<void> {
  await transaction.$executeRaw`
    INSERT INTO public.pending_deletions (identity_provider_user_id, due_at)
    VALUES (${identityProviderUserId}, now() + ${hours} * interval '1 hour')
    ON CONFLICT (identity_provider_user_id) DO UPDATE SET due_at = EXCLUDED.due_at`;
}

const DueDeletion = z.object({
  identityProviderUserId: z.string(),
  /** The internal id. Null if this provider id is not the present id of a linked user. */
  userId: z.nullable(z.string()),
  /** True if this provider id is a previous id of a user, which a relink has replaced with another provider id. */
  isPrevious: z.boolean(),
  /** First 16 hexadecimal digits of the keyed hash that identifies the user in `forgotten_users`. */
  idHash: z.string(),
});

/** A user whose deletion is due. */
export type DueDeletion = z.infer<typeof DueDeletion>;

/** Returns all users whose deletion is due, sorted by identity-provider user id. */
export async function dueDeletions(): Promise<DueDeletion[]> {
  const found = await database().$queryRaw`
    SELECT identity_provider_user_id AS "identityProviderUserId", users.id AS "userId",
           previous_ids.user_id IS NOT NULL AS "isPrevious",
           left(encode(public.forgotten_user_hash(identity_provider_user_id), 'hex'), 16) AS "idHash"
    FROM public.pending_deletions
    LEFT JOIN public.users USING (identity_provider_user_id)
    LEFT JOIN public.previous_ids USING (identity_provider_user_id)
    WHERE due_at <= now() ORDER BY identity_provider_user_id`;
  return z.array(DueDeletion).parse(found);
}

const Due = z.array(z.object({ dueAt: z.nullable(Time) }));

/** Returns the time at which the deletion of a user with these ids is due, or null if none is pending. */
export async function deletionDueAt(ids: readonly string[]): Promise<Date | null> {
  const found = await database().$queryRaw`
    SELECT (extract(epoch FROM min(due_at)) * 1000)::float8 AS "dueAt" FROM public.pending_deletions
    WHERE identity_provider_user_id = ANY (${ids}::text[])`;
  return Due.parse(found)[0]?.dueAt ?? null;
}

/** Deletes the pending deletions of these ids, with `onlyDue` only if they are still due. Returns false if there is none. */
export async function cancelDeletion(ids: readonly string[], onlyDue = false): Promise<boolean> {
  const deleted = await database().$executeRaw`
    DELETE FROM public.pending_deletions
    WHERE identity_provider_user_id = ANY (${ids}::text[]) AND (due_at <= now() OR NOT ${onlyDue})`;
  return deleted > 0;
}

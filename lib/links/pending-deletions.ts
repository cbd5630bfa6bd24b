import * as z from 'zod/mini';
import { KINDS, type Kind } from '../linking/kinds';
import { database, raw, type Transaction } from '../storage/database';
import { Time } from './rows';

/**
 * Schedules the deletion of a user or an organization, which lib/links/forget-due.ts runs after `hours` hours. A later call for the
 * same id restarts this period. Does not check that the id is linked.
 *
 * A late `user.created` event can still link a user. From the commit on, no request gets the tenant of an organization from the
 * database or creates it: the exclusive lock lets an insert in flight commit first (see the SQL function `forgotten_until`).
 */
export async function scheduleDeletion(
  kind: Kind,
  transaction: Transaction,
  providerId: string,
  hours: number,
): Promise<void> {
  const [table, column] = [raw(KINDS[kind].pendingDeletions), raw(KINDS[kind].column)];
  await transaction.$executeRaw`
    WITH locked AS MATERIALIZED (SELECT pg_advisory_xact_lock(public.link_lock(${kind}, ${providerId})))
    INSERT INTO public.${table} (${column}, due_at)
    SELECT ${providerId}, now() + ${hours} * interval '1 hour' FROM locked
    ON CONFLICT (${column}) DO UPDATE SET due_at = EXCLUDED.due_at`;
}

const DueDeletion = z.object({
  providerId: z.string(),
  /** The internal id. Null if this provider id is not the present id of a row. */
  internalId: z.nullable(z.string()),
  /** True if this provider id is a previous id, which a relink has replaced with another provider id. */
  isPrevious: z.boolean(),
  /** First 16 hexadecimal digits of the keyed hash that identifies the id in `forgotten_users`. */
  idHash: z.string(),
});

/** A user or an organization whose deletion is due. */
export type DueDeletion = z.infer<typeof DueDeletion>;

/** Returns all users or organizations whose deletion is due, sorted by their ids at the provider. */
export async function dueDeletions(kind: Kind): Promise<DueDeletion[]> {
  const { table, column, previousIds, owner, pendingDeletions } = KINDS[kind];
  const found = await database().$queryRaw`
    SELECT ${raw(column)} AS "providerId", linked.id AS "internalId",
           previous.${raw(owner)} IS NOT NULL AS "isPrevious",
           left(encode(public.forgotten_hash(${kind}, ${raw(column)}), 'hex'), 16) AS "idHash"
    FROM public.${raw(pendingDeletions)}
    LEFT JOIN public.${raw(table)} AS linked USING (${raw(column)})
    LEFT JOIN public.${raw(previousIds)} AS previous USING (${raw(column)})
    WHERE due_at <= now() ORDER BY ${raw(column)}`;
  return z.array(DueDeletion).parse(found);
}

const Due = z.array(z.object({ dueAt: z.nullable(Time) }));

/** Returns the time at which the deletion of a user or organization with these ids is due, or null if none is pending. */
export async function deletionDueAt(kind: Kind, ids: readonly string[]): Promise<Date | null> {
  const { column, pendingDeletions } = KINDS[kind];
  const found = await database().$queryRaw`
    SELECT (extract(epoch FROM min(due_at)) * 1000)::float8 AS "dueAt" FROM public.${raw(pendingDeletions)}
    WHERE ${raw(column)} = ANY (${ids}::text[])`;
  return Due.parse(found)[0]?.dueAt ?? null;
}

/** Deletes the pending deletions of these ids, with `onlyDue` only if they are still due. Returns false if there is none. */
export async function cancelDeletion(kind: Kind, ids: readonly string[], onlyDue = false): Promise<boolean> {
  const { column, pendingDeletions } = KINDS[kind];
  const deleted = await database().$executeRaw`DELETE FROM public.${raw(pendingDeletions)}
    WHERE ${raw(column)} = ANY (${ids}::text[]) AND (due_at <= now() OR NOT ${onlyDue})`;
  return deleted > 0;
}

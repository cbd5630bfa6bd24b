import * as z from 'zod/mini';
import type { Kind } from '../core/ports';
import { KINDS } from '../ids/store';
import { database, raw, sql, type Transaction } from '../storage/database';
import { idHash, recordChanges } from './history';
import { selectIds, Time } from './rows';

/**
 * Schedules and records a deletion after `hours` hours (lib/operator/forget.ts), also of an id that is not linked. A later
 * call restarts this period. A late `user.created` event can still link a user. From the commit on, no request gets the tenant of
 * an organization from the database or creates it, because the exclusive lock lets an insert in flight commit first.
 */
export async function scheduleDeletion(
  kind: Kind,
  transaction: Transaction,
  providerId: string,
  hours: number,
): Promise<void> {
  await transaction.$executeRaw`
    WITH locked AS MATERIALIZED (SELECT pg_advisory_xact_lock(public.link_lock(${kind}, ${providerId})))
    INSERT INTO public.pending_deletions (kind, provider_id, due_at)
    SELECT ${kind}, ${providerId}, now() + ${hours} * interval '1 hour' FROM locked
    ON CONFLICT (kind, provider_id) DO UPDATE SET due_at = EXCLUDED.due_at`;
  await recordChanges(transaction, kind, 'schedule', { by: 'event' }, [providerId]);
}

/** Returns all ids of users or tenants that had one of these ids and whose row is deleted, but whose ids may still be cached. */
export const unfinishedIds = (kind: Kind, ids: readonly string[], client?: Transaction): Promise<string[]> =>
  selectIds(
    sql`SELECT DISTINCT unnest(provider_ids) AS id FROM public.unfinished_deletions
      WHERE kind = ${kind} AND provider_ids && ${ids}::text[]`,
    client,
  );

/**
 * Ends the deletions of ids that are no longer cached. If an id of a due deletion is linked again, its deletion is pending again,
 * unless an operator has restored the id, or a session token from after the deletion has linked it (see `forgotten_until`).
 */
export async function finishDeletions(kind: Kind, ids: readonly string[]): Promise<void> {
  const { table, column } = KINDS[kind];
  await database().$executeRaw`WITH finished AS (
      DELETE FROM public.unfinished_deletions WHERE kind = ${kind} AND provider_ids <@ ${ids}::text[]
      RETURNING provider_ids, is_due)
    INSERT INTO public.pending_deletions (kind, provider_id, due_at)
    SELECT ${kind}, ${raw(column)}, now() FROM public.${raw(table)} JOIN finished ON is_due AND ${raw(column)} = ANY (provider_ids)
    ON CONFLICT DO NOTHING`;
}

const DueDeletion = z.object({
  providerId: z.string(),
  /** The internal id. Null if this provider id is not the present id of a row. */
  internalId: z.nullable(z.string()),
  /** First 16 hexadecimal digits of the keyed hash that identifies the id in `forgotten_users`. */
  idHash: z.string(),
  /** All ids of a row that an interrupted run has deleted, or null. */
  unfinished: z.nullable(z.array(z.string())),
});

/** A user or an organization whose deletion is due or unfinished. */
export type DueDeletion = z.infer<typeof DueDeletion>;

/** Returns all users or organizations whose deletion is due or unfinished, sorted by their ids at the provider. */
export async function dueDeletions(kind: Kind): Promise<DueDeletion[]> {
  const { table, column } = KINDS[kind];
  const found = await database().$queryRaw`
    SELECT due.*, ${idHash(kind, raw('"providerId"'))} AS "idHash" FROM (
      SELECT provider_id AS "providerId", linked.id AS "internalId", NULL::text[] AS unfinished
      FROM public.pending_deletions LEFT JOIN public.${raw(table)} AS linked ON ${raw(column)} = provider_id
      WHERE kind = ${kind} AND due_at <= now()
      UNION ALL SELECT provider_ids[1], internal_id, provider_ids
      FROM public.unfinished_deletions WHERE kind = ${kind}) AS due
    ORDER BY "providerId"`;
  return z.array(DueDeletion).parse(found);
}

const Due = z.array(z.object({ dueAt: z.nullable(Time) }));

/** Returns the time at which the deletion of a user or organization with these ids is due, or null if none is pending. */
export async function deletionDueAt(kind: Kind, ids: readonly string[]): Promise<Date | null> {
  const found = await database().$queryRaw`
    SELECT (extract(epoch FROM min(due_at)) * 1000)::float8 AS "dueAt" FROM public.pending_deletions
    WHERE kind = ${kind} AND provider_id = ANY (${ids}::text[])`;
  return Due.parse(found)[0]?.dueAt ?? null;
}

/** Deletes the pending deletions of these ids, with `onlyDue` only if they are still due. Returns false if there is none. */
export async function cancelDeletion(
  kind: Kind,
  ids: readonly string[],
  onlyDue = false,
  client: Transaction = database(),
): Promise<boolean> {
  const deleted = await client.$executeRaw`DELETE FROM public.pending_deletions
    WHERE kind = ${kind} AND provider_id = ANY (${ids}::text[]) AND (due_at <= now() OR NOT ${onlyDue})`;
  return deleted > 0;
}

import { retryOnConflict } from '../base/retry';
import type { Kind } from '../core/ports';
import { KINDS } from '../ids/store';
import { database, raw, sql, type Transaction } from '../storage/database';
import { type Change, recordChanges } from './history';
import { cancelDeletion, unfinishedIds } from './pending-deletions';
import { allIdsOf, hasId, readRows, selectIds } from './rows';

/** A statement sees the rows that a registration has committed while `storeForgotten` waited for its advisory lock. */
export const TRANSACTION = { isolationLevel: 'ReadCommitted' } as const;

/** Message of a deletion that a foreign key or a column that must not become null prevents (lib/storage/database.ts). */
const PREVENTED = /Code: `23(?:001|502|503)`.*\(table: (.+)\)/s;

/**
 * Locks an id against the events that schedule its deletion, and the row with this present or previous id against a relink.
 * Returns its internal id, and its ids at the provider, the present one first.
 */
async function lockLink(transaction: Transaction, kind: Kind, providerId: string) {
  await transaction.$executeRaw`SELECT pg_advisory_xact_lock(public.link_lock(${kind}, ${providerId}))`;
  const locked = sql`SELECT id FROM public.${raw(KINDS[kind].table)} WHERE ${hasId(kind, providerId)} FOR UPDATE`;
  const ids = await selectIds(locked, transaction);
  const [link] = await readRows(kind, sql`id = ANY (${ids}::uuid[])`, 1, transaction);
  return { internalId: link?.internalId ?? null, providerIds: link ? allIdsOf(link) : [providerId] };
}

/** Deletes the entries of forgotten ids that have not expired. Returns their number. */
const deleteForgotten = (transaction: Transaction, kind: Kind, ids: readonly string[]) =>
  transaction.$executeRaw`DELETE FROM public.forgotten_users WHERE expires_at > now()
    AND id_hash IN (SELECT public.forgotten_hash(${kind}, id) FROM unnest(${ids}::text[]) AS id)`;

/** Does the same for ids that an operator wants to be linked again. Their unfinished deletions do not become pending again. */
export async function restoreLinks(transaction: Transaction, kind: Kind, ids: readonly string[]) {
  await transaction.$executeRaw`UPDATE public.unfinished_deletions SET is_due = false
    WHERE kind = ${kind} AND provider_ids && ${ids}::text[]`;
  return deleteForgotten(transaction, kind, ids);
}

/**
 * Stores that ids are forgotten for `days` days, or deletes the entries if `days` is 0. The transaction must delete the row of the
 * ids afterwards. The SQL function `forgotten_until` says why a registration in flight cannot leave a row.
 */
const storeForgotten = (transaction: Transaction, kind: Kind, ids: readonly string[], days: number) =>
  days === 0
    ? deleteForgotten(transaction, kind, ids)
    : transaction.$executeRaw`WITH locked AS MATERIALIZED (
          SELECT id, pg_advisory_xact_lock(public.link_lock(${kind}, id)) FROM unnest(${ids}::text[]) AS id)
        INSERT INTO public.forgotten_users (id_hash, forgotten_at, expires_at)
        SELECT public.forgotten_hash(${kind}, id), clock_timestamp(), clock_timestamp() + ${days} * interval '1 day'
        FROM locked
        ON CONFLICT (id_hash) DO UPDATE SET forgotten_at = EXCLUDED.forgotten_at, expires_at = EXCLUDED.expires_at`;

/** Deletes up to ten expired entries, so that the table stays small. */
const deleteExpired = (transaction: Transaction) => transaction.$executeRaw`
  DELETE FROM public.forgotten_users WHERE id_hash IN (
    SELECT id_hash FROM public.forgotten_users WHERE expires_at < now()
    ORDER BY expires_at LIMIT 10 FOR UPDATE SKIP LOCKED)`;

/** Deletes a locked row, and records the deletion, also as unfinished. */
async function deleteRow(
  transaction: Transaction,
  kind: Kind,
  { internalId, providerIds }: Awaited<ReturnType<typeof lockLink>>,
  { days, isDue, change }: { readonly days: number; readonly isDue: boolean; readonly change: Change },
): Promise<string[]> {
  // The provider may still have the internal id of a user as an `external_id` (lib/operator/external-ids.ts).
  const allIds = kind === 'user' && internalId !== null ? [...providerIds, internalId] : providerIds;
  await storeForgotten(transaction, kind, [...new Set(allIds)], days);
  await deleteExpired(transaction);
  const [providerId = ''] = providerIds;
  await recordChanges(transaction, kind, isDue ? 'due' : 'forget', change, [providerId]);
  await transaction.$executeRaw`DELETE FROM public.${raw(KINDS[kind].table)} WHERE id = ${internalId}::uuid`;
  await transaction.$executeRaw`
    INSERT INTO public.unfinished_deletions (kind, internal_id, provider_ids, is_due)
    VALUES (${kind}, ${internalId}::uuid, ${providerIds}::text[], ${isDue})`;
  return unfinishedIds(kind, providerIds, transaction);
}

/** Runs a deletion in a transaction. If rows of another table prevent it, throws an error that names the table. */
const inTransaction = <T>(work: (transaction: Transaction) => Promise<T>): Promise<T> =>
  retryOnConflict(() => database().$transaction(work, TRANSACTION)).catch((error: unknown) => {
    const [, table] = PREVENTED.exec(String(error)) ?? [];
    if (table === undefined) throw error;
    throw new Error(
      `Nothing was deleted, because rows of the table ${table} need the row (docs/users.md, "Forget a user").`,
    );
  });

/**
 * Deletes the row of a user or tenant, the rows that refer to it by ON DELETE CASCADE, and its pending deletions. In the same
 * transaction, stores that each of its ids, also the internal one of a user, is forgotten for `days` days. Returns its ids, and
 * those of earlier deletions that are not finished (`finishDeletions`).
 */
export const deleteLink = (kind: Kind, providerId: string, days: number, change: Change): Promise<string[]> =>
  inTransaction(async (transaction) => {
    const link = await lockLink(transaction, kind, providerId);
    const ids = await deleteRow(transaction, kind, link, { days, isDue: false, change });
    await cancelDeletion(kind, link.providerIds, false, transaction);
    return ids;
  });

/**
 * Does the same only if the deletion of this id is due and the id is the present one of the row. Otherwise, keeps the row and
 * returns the reason: the deletion was cancelled or `postponed`, or a relink has `moved` the row to another id.
 */
export const deleteIfDue = (kind: Kind, providerId: string, days: number, change: Change) =>
  inTransaction(async (transaction) => {
    const link = await lockLink(transaction, kind, providerId);
    if (!(await cancelDeletion(kind, [providerId], true, transaction))) return 'postponed' as const;
    if (link.providerIds[0] !== providerId) return 'moved' as const;
    return deleteRow(transaction, kind, link, { days, isDue: true, change });
  });

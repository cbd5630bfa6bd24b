import * as z from 'zod/mini';
import { retryOnConflict } from '../base/conflict';
import { sqlStateOf } from '../base/sql-state';
import { KINDS, type Kind } from '../linking/kinds';
import { database, raw, type Transaction } from '../storage/database';

/** A statement sees the rows that a registration has committed while `storeForgotten` waited for its advisory lock. */
export const TRANSACTION = { isolationLevel: 'ReadCommitted' } as const;

/** SQLSTATE for the deletion of a row that another table refers to without ON DELETE CASCADE or SET NULL. */
const FOREIGN_KEY_VIOLATION = '23503';
const Ids = z.array(z.object({ id: z.string() }));

/**
 * Locks the row with this present or previous id, so that a relink cannot change its ids. Returns its internal id, and all its ids
 * at the provider.
 */
async function lockLink(transaction: Transaction, kind: Kind, providerId: string) {
  const { table, column, previousIds, owner } = KINDS[kind];
  const [row] = Ids.parse(
    await transaction.$queryRaw`SELECT id FROM public.${raw(table)} WHERE id = coalesce(
        (SELECT id FROM public.${raw(table)} WHERE ${raw(column)} = ${providerId}),
        (SELECT ${raw(owner)} FROM public.${raw(previousIds)} WHERE ${raw(column)} = ${providerId}))
      FOR UPDATE`,
  );
  if (row === undefined) return undefined;
  const ids = await transaction.$queryRaw`
    SELECT ${raw(column)} AS id FROM public.${raw(table)} WHERE id = ${row.id}::uuid
    UNION ALL SELECT ${raw(column)} FROM public.${raw(previousIds)} WHERE ${raw(owner)} = ${row.id}::uuid`;
  return { internalId: row.id, providerIds: Ids.parse(ids).map(({ id }) => id) };
}

/** Deletes the entries of forgotten ids. */
export const deleteForgotten = (transaction: Transaction, kind: Kind, ids: readonly string[]) =>
  transaction.$executeRaw`DELETE FROM public.forgotten_users
    WHERE id_hash IN (SELECT public.forgotten_hash(${kind}, id) FROM unnest(${ids}::text[]) AS id)`;

/**
 * Stores that an id is forgotten for the next `days` days. If `days` is 0, deletes the entry instead. The transaction must delete
 * the row of the id afterwards. A registration (a statement that inserts a link) may be in flight at that time. The comment of the
 * SQL function `forgotten_until` (prisma/migrations) describes the advisory lock that this function takes, and why such a
 * registration cannot leave a row.
 */
async function storeForgotten(transaction: Transaction, kind: Kind, id: string, days: number): Promise<void> {
  await (days === 0
    ? deleteForgotten(transaction, kind, [id])
    : transaction.$executeRaw`WITH locked AS MATERIALIZED (SELECT pg_advisory_xact_lock(public.link_lock(${kind}, ${id})))
        INSERT INTO public.forgotten_users (id_hash, forgotten_at, expires_at)
        SELECT public.forgotten_hash(${kind}, ${id}), clock_timestamp(), clock_timestamp() + ${days} * interval '1 day'
        FROM locked
        ON CONFLICT (id_hash) DO UPDATE SET forgotten_at = EXCLUDED.forgotten_at, expires_at = EXCLUDED.expires_at`);
}

/** Deletes up to ten expired entries, so that the table stays small. */
const deleteExpired = (transaction: Transaction) => transaction.$executeRaw`
  DELETE FROM public.forgotten_users WHERE id_hash IN (
    SELECT id_hash FROM public.forgotten_users WHERE expires_at < now()
    ORDER BY expires_at LIMIT 10 FOR UPDATE SKIP LOCKED)`;

/**
 * Deletes the row of a user or tenant, if there is one, and the rows that refer to it by ON DELETE CASCADE. In the same
 * transaction, stores for each of its ids, also the internal one of a user, that it is forgotten for `days` days (lib/linking/links.ts).
 * Returns the ids at the provider. If a foreign key without ON DELETE CASCADE or SET NULL refers to the row, keeps the row and
 * returns `referenced`.
 */
export async function deleteLink(
  kind: Kind,
  providerId: string,
  days: number,
): Promise<readonly string[] | 'referenced'> {
  const deleting = retryOnConflict(() =>
    database().$transaction(async (transaction) => {
      await storeForgotten(transaction, kind, providerId, days);
      await deleteExpired(transaction);
      const row = await lockLink(transaction, kind, providerId);
      if (row === undefined) return [providerId];
      const { internalId, providerIds } = row;
      for (const id of providerIds) if (id !== providerId) await storeForgotten(transaction, kind, id, days);
      // The provider may still have the internal id of a user as an `external_id` (lib/links/external-ids.ts).
      if (kind === 'user') await storeForgotten(transaction, kind, internalId, days);
      await transaction.$executeRaw`DELETE FROM public.${raw(KINDS[kind].table)} WHERE id = ${internalId}::uuid`;
      return providerIds;
    }, TRANSACTION),
  );
  return deleting.catch((error: unknown) => {
    if (sqlStateOf(error) === FOREIGN_KEY_VIOLATION) return 'referenced' as const;
    throw error;
  });
}

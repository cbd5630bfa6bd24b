import * as z from 'zod/mini';
import { retryOnConflict } from '../base/conflict';
import { sqlStateOf } from '../base/sql-state';
import { forgottenUntil, linkedUserIds } from '../linking/links';
import { database, sql, type Transaction } from '../storage/database';

/**
 * Schema of a time that a statement selects in milliseconds since 1970. For a `timestamptz`, @prisma/adapter-pg 7.10 returns
 * another time if the time zone of the session is not UTC.
 */
export const Time = z.pipe(
  z.number(),
  z.transform((milliseconds) => new Date(milliseconds)),
);

const Links = z.array(
  z.object({
    userId: z.string(),
    identityProviderUserId: z.string(),
    previousIds: z.array(z.object({ identityProviderUserId: z.string(), expiresAt: Time })),
  }),
);

/**
 * A row of `users`, and the rows of its previous ids. A relink replaced these former ids at the identity provider. The service
 * accepts each until `expiresAt`.
 */
export type Link = Readonly<z.infer<typeof Links>[number]>;

/** Returns up to `limit` links that match the condition, sorted by internal id. */
async function readLinks(condition: ReturnType<typeof sql>, limit: number): Promise<Link[]> {
  const rows = await database()
    .$queryRaw`SELECT id AS "userId", identity_provider_user_id AS "identityProviderUserId", coalesce((
        SELECT json_agg(json_build_object('identityProviderUserId', previous.identity_provider_user_id,
                                          'expiresAt', extract(epoch FROM expires_at) * 1000) ORDER BY expires_at DESC)
        FROM public.previous_ids AS previous WHERE user_id = users.id), '[]') AS "previousIds"
    FROM public.users WHERE ${condition} ORDER BY id LIMIT ${limit}`;
  return Links.parse(rows);
}

/** Returns all ids of a user at the identity provider, the present one first. */
export const allIdsOf = ({ identityProviderUserId, previousIds }: Omit<Link, 'userId'>): string[] => [
  identityProviderUserId,
  ...previousIds.map((previous) => previous.identityProviderUserId),
];

/** Returns the internal ids of the ids that are linked (see `linkedUserIds`), and which of the other ids are forgotten. */
export async function lookUp(identityProviderUserIds: readonly string[]) {
  const linked = await linkedUserIds(identityProviderUserIds);
  const forgotten = await forgottenUntil(identityProviderUserIds.filter((id) => !linked.has(id)));
  return { linked, forgotten };
}

/** Returns up to `limit` rows after the row of `userId` or, if it is undefined, from the start. Sorts by internal id. */
export const linksAfter = (userId: string | undefined, limit: number): Promise<Link[]> =>
  readLinks(userId === undefined ? sql`true` : sql`id > ${userId}::uuid`, limit);

/**
 * Returns the rows with this internal id, or with this present or previous identity-provider user id. There are two rows if the
 * id is the internal id of one user and an identity-provider user id of another user.
 */
export async function findLinks(eitherId: string): Promise<Link[]> {
  const internalId = z.guid().safeParse(eitherId).data ?? null;
  return readLinks(
    sql`id IN (
      SELECT id FROM public.users WHERE identity_provider_user_id = ${eitherId}
      UNION SELECT user_id FROM public.previous_ids WHERE identity_provider_user_id = ${eitherId}
      UNION SELECT ${internalId}::uuid)`,
    2,
  );
}

/** A statement sees the rows that a registration has committed while `storeForgotten` waited for its advisory lock. */
export const TRANSACTION = { isolationLevel: 'ReadCommitted' } as const;

/** SQLSTATE for the deletion of a row that another table refers to without ON DELETE CASCADE or SET NULL. */
const FOREIGN_KEY_VIOLATION = '23503';
const Locked = z.array(z.object({ id: z.guid(), identityProviderUserId: z.string() }));

/** Locks the row of the user that has this present or previous id, so that a relink cannot change the ids of the user. */
async function lockLink(transaction: Transaction, identityProviderUserId: string) {
  const [row] = Locked.parse(
    await transaction.$queryRaw`SELECT id, identity_provider_user_id AS "identityProviderUserId" FROM public.users
      WHERE id = coalesce(
        (SELECT id FROM public.users WHERE identity_provider_user_id = ${identityProviderUserId}),
        (SELECT user_id FROM public.previous_ids WHERE identity_provider_user_id = ${identityProviderUserId}))
      FOR UPDATE`,
  );
  if (row === undefined) return undefined;
  return { ...row, previousIds: await transaction.previousId.findMany({ where: { userId: row.id } }) };
}

/**
 * Stores that a user is forgotten for the next `days` days. If `days` is 0, deletes the entry instead. The transaction must
 * delete the row of the user afterwards. A registration (a statement that links the user) may be in flight at that time. The
 * comment of the SQL function `forgotten_until` (prisma/migrations) describes the advisory lock that this function takes, and
 * why such a registration cannot leave a row. Also deletes up to ten expired entries, so that the table stays small.
 */
async function storeForgotten(
  transaction: Transaction,
  identityProviderUserId: string,
  days: number,
): Promise<void> {
  await (days === 0
    ? transaction.$executeRaw`DELETE FROM public.forgotten_users
        WHERE id_hash = public.forgotten_user_hash(${identityProviderUserId})`
    : transaction.$executeRaw`WITH locked AS MATERIALIZED (
          SELECT pg_advisory_xact_lock(hashtextextended(${identityProviderUserId}, 0)))
        INSERT INTO public.forgotten_users (id_hash, forgotten_at, expires_at)
        SELECT public.forgotten_user_hash(${identityProviderUserId}), clock_timestamp(),
               clock_timestamp() + ${days} * interval '1 day'
        FROM locked
        ON CONFLICT (id_hash) DO UPDATE SET forgotten_at = EXCLUDED.forgotten_at, expires_at = EXCLUDED.expires_at`);
  await transaction.$executeRaw`DELETE FROM public.forgotten_users WHERE id_hash IN (
      SELECT id_hash FROM public.forgotten_users WHERE expires_at < now()
      ORDER BY expires_at LIMIT 10 FOR UPDATE SKIP LOCKED)`;
}

/**
 * Deletes the row of a user, if there is one, and the rows that refer to it by ON DELETE CASCADE. In the same transaction,
 * stores for each id of the user, also the internal one, that the user is forgotten for `days` days (lib/linking/links.ts). Returns these ids. If
 * a foreign key without ON DELETE CASCADE or SET NULL refers to the row, keeps the row and returns `referenced`.
 */
export async function deleteLink(
  identityProviderUserId: string,
  days: number,
): Promise<readonly string[] | 'referenced'> {
  const deleting = retryOnConflict(() =>
    database().$transaction(async (transaction) => {
      await storeForgotten(transaction, identityProviderUserId, days);
      const row = await lockLink(transaction, identityProviderUserId);
      if (row === undefined) return [identityProviderUserId];
      const ids = allIdsOf(row);
      // The internal id too, because the provider may still have it as an `external_id` (lib/users/external-ids.ts).
      for (const id of [...ids, row.id])
        if (id !== identityProviderUserId) await storeForgotten(transaction, id, days);
      await transaction.user.deleteMany({ where: { id: row.id } });
      return ids;
    }, TRANSACTION),
  );
  return deleting.catch((error: unknown) => {
    if (sqlStateOf(error) === FOREIGN_KEY_VIOLATION) return 'referenced' as const;
    throw error;
  });
}

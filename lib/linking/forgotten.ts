import * as z from 'zod/mini';
import type { Transaction } from '../storage/database';

// A forgotten user is one that an operator has deleted. The table `forgotten_users` has an entry for the user: a keyed hash of
// the identity-provider user id, the time of the deletion and an expiry. The statement that links users (lib/linking/links.ts)
// skips forgotten users.
//
// The key is a random value in the database (`forgotten_users_key`), not derived from a secret of the environment. All
// processes and commands must have the same key, but an instance of the identity provider may have several valid secret keys,
// and secrets are rotated. If the key were derived from a secret, a process with another secret would link the forgotten
// user again, without an error or a log line. Because the key is in the database, a full copy of the database shows whether a
// known id was forgotten. A copy without `forgotten_users_key` does not show this. The role of the service cannot read the two
// tables, but can call SQL functions that read them with the privileges of their owner.

const Found = z.array(z.object({ id: z.string(), until: z.number() }));

/**
 * Returns the ids that belong to forgotten users. The value of each id is the time at which its entry expires, in milliseconds
 * since 1970. `issuedAt` is the issue time of a session token, in seconds since 1970. If `issuedAt` is set, omits users that
 * were forgotten before the token was issued, because such a token may link the user again (lib/linking/links.ts).
 */
export async function forgottenUntil(
  identityProviderUserIds: readonly string[],
  issuedAt: number | null = null,
): Promise<ReadonlyMap<string, number>> {
  if (identityProviderUserIds.length === 0) return new Map();
  const { database } = await import('../storage/database');
  const found = await database().$queryRaw`SELECT * FROM (
      SELECT id, (extract(epoch FROM public.forgotten_until(id, to_timestamp(${issuedAt}::float8))) * 1000)::float8 AS until
      FROM unnest(${identityProviderUserIds}::text[]) AS id) AS checked
    WHERE until IS NOT NULL`;
  return new Map(Found.parse(found).map(({ id, until }) => [id, until]));
}

/**
 * Stores that a user is forgotten for the next `days` days. If `days` is 0, deletes the entry instead. The transaction must
 * delete the row of the user afterwards. A registration (a statement that links the user) may be in flight at that time. The
 * comment of the SQL function `forgotten_until` (prisma/migrations) describes the advisory lock that this function takes, and
 * why such a registration cannot leave a row. Also deletes up to ten expired entries, so that the table stays small.
 */
export async function storeForgotten(
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

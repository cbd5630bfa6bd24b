import * as z from 'zod/mini';
import type { Transaction } from '../storage/database';

// A forgotten user has an entry in `forgotten_users`: a keyed hash of the identity-provider user id, the time of the deletion
// and an expiry. The statement that links users (lib/linking/links.ts) skips these ids.
//
// The key is a random value in the database. A key that is derived from a secret of the environment is worse. All processes
// and commands must have the same key, but an instance may have several valid secret keys, and each secret is rotated. A
// process with another secret would link the forgotten user again, without an error or a log line. The limit of this choice:
// a reader of a full copy of the database can test whether an id that it already knows was forgotten. Without the table of
// the key, it cannot. The role of the service may read neither table.

const Found = z.array(z.object({ id: z.string(), until: z.number() }));

/**
 * Returns the forgotten ids among these, and the times in milliseconds until which they are forgotten. With `issuedAt`,
 * returns those that a session token of that time does not link (lib/linking/links.ts).
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
 * Stores for `days` days that a user is forgotten, or deletes the entry if `days` is 0. The transaction must delete the row
 * afterwards. The lock is the one of the function `forgotten_until`, which explains why no registration in flight can leave a
 * row. Also deletes up to ten expired entries, so that the table stays small.
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

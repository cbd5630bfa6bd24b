import { v7 as uuidV7 } from 'uuid';
import * as z from 'zod/mini';
import { retryOnConflict } from '../errors/sql-state';
import { forgottenUntil } from './forgotten';

/** Loads the database client on first use, because a process that finds its users in the cache never needs it. */
const database = async () => (await import('../storage/database')).database();

const Found = z.array(z.object({ user: z.string(), id: z.nullable(z.guid()) }));

/**
 * Returns a map from identity-provider user ids to internal ids. The map omits ids that are not linked. It contains previous
 * ids, which are the identity-provider user ids that users had before `users:relink` (lib/users/relink.ts). The value of an
 * expired previous id is null. Runs one statement. Passes database errors through.
 */
export async function linkedUserIds(
  identityProviderUserIds: readonly string[],
): Promise<ReadonlyMap<string, string | null>> {
  const found = await (await database())
    .$queryRaw`SELECT identity_provider_user_id AS "user", id FROM public.users
    WHERE identity_provider_user_id = ANY (${identityProviderUserIds}::text[])
    UNION ALL SELECT * FROM public.previous_links(${identityProviderUserIds}::text[])`;
  return new Map(Found.parse(found).map(({ user, id }) => [user, id]));
}

const Inserted = z.array(z.object({ id: z.guid() }));

/**
 * Inserts links for users that have none, and returns the internal ids of the inserted rows. If a concurrent call inserts the
 * link of a user, only that call returns the id. Skips a forgotten user (a user that an operator has deleted,
 * lib/linking/forgotten.ts), unless the session token that requests the link was issued after the deletion. `issuedAt` is the
 * issue time of that token, in seconds since 1970, or null without a token.
 *
 * The statement is raw SQL, because Prisma would compute a query plan for each call of `createManyAndReturn`. The statement
 * names the conflict target. If the unique key is missing, the statement therefore fails instead of creating a second link.
 */
export async function insertLinks(
  identityProviderUserIds: readonly string[],
  issuedAt: number | null = null,
): Promise<string[]> {
  const ids = identityProviderUserIds.map(() => uuidV7());
  const inserted = await (await database()).$queryRaw`INSERT INTO public.users (id, identity_provider_user_id)
    SELECT * FROM unnest(${ids}::uuid[], ${identityProviderUserIds}::text[]) AS link (id, user_id)
    WHERE public.forgotten_until(user_id, to_timestamp(${issuedAt}::float8)) IS NULL
    ON CONFLICT (identity_provider_user_id) DO NOTHING
    RETURNING id`;
  return Inserted.parse(inserted).map(({ id }) => id);
}

/** Returns the internal id of a user. Returns undefined if there is none, and null for an expired previous id. */
export const findLink = async (identityProviderUserId: string): Promise<string | null | undefined> =>
  (await linkedUserIds([identityProviderUserId])).get(identityProviderUserId);

/** Inserts the link of a user and returns the internal id, or undefined if `insertLinks` inserts none. */
export const insertLink = async (
  identityProviderUserId: string,
  issuedAt?: number,
): Promise<string | undefined> => (await insertLinks([identityProviderUserId], issuedAt))[0];

/** Returns true for a forgotten user, unless the token was issued after the deletion. */
export const isForgotten = async (identityProviderUserId: string, issuedAt?: number): Promise<boolean> =>
  (await forgottenUntil([identityProviderUserId], issuedAt)).size > 0;

/** Result of `linkMany`: how many users it linked, and how many users it did not link because they are forgotten. */
export interface Linked {
  readonly linked: number;
  readonly forgotten: number;
}

/**
 * Links many identity-provider users, each exactly once. Returns how many this call linked, and how many are forgotten.
 *
 * Runs one statement if all users are already linked. Otherwise, runs a second statement that inserts the missing links. If that
 * statement does not insert all of them, runs a third that counts the forgotten users. If several calls link a user at the same
 * time, the unique key lets only one of them insert the row. Passes database errors through. After an error, the links may
 * already exist, because each statement is committed separately. The call can be repeated. `users:backfill` passes up to 500 ids.
 */
export async function linkMany(identityProviderUserIds: readonly string[]): Promise<Linked> {
  return retryOnConflict(async () => {
    const existing = await linkedUserIds(identityProviderUserIds);
    const missing = identityProviderUserIds.filter((id) => !existing.has(id));
    const linked = missing.length === 0 ? 0 : (await insertLinks(missing)).length;
    return { linked, forgotten: linked === missing.length ? 0 : (await forgottenUntil(missing)).size };
  });
}

import { v7 as uuidV7 } from 'uuid';
import * as z from 'zod/mini';

// A forgotten user is one that an operator has deleted. The table `forgotten_users` has a keyed hash of the user's id at the
// provider, the time of the deletion and an expiry. The key is a random value in the database and not derived from a secret,
// because all processes need the same key while secrets are rotated. The role of the service cannot read the key or the table,
// but can call SQL functions that do.

/** Kinds of internal ids. A tenant is an organization of the identity provider. */
export type Kind = 'user' | 'tenant';

/** Loads the database client on first use, because a process that finds its users in the cache never needs it. */
const database = async () => (await import('../storage/database')).database();

const Found = z.array(z.object({ user: z.string(), id: z.nullable(z.guid()) }));

/**
 * Returns a map from identity-provider user ids to internal ids, without the ids that are not linked. The value of an expired
 * previous id, which a user had before a relink, is null. Runs one statement. Passes database errors through.
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

const Inserted = z.array(z.object({ user: z.string(), id: z.guid() }));

/**
 * Inserts links for users that have none, and returns the internal ids of the inserted rows by the ids at the provider. If a
 * concurrent call inserts the link of a user, only that call returns the id. Skips forgotten users, unless the session token was issued after the deletion.
 * `issuedAt` is the issue time of that token, in seconds since 1970, or null without a token.
 *
 * The statement names the conflict target, so it fails without the unique key instead of creating a second link.
 */
export async function insertLinks(
  identityProviderUserIds: readonly string[],
  issuedAt: number | null = null,
): Promise<ReadonlyMap<string, string>> {
  const ids = identityProviderUserIds.map(() => uuidV7());
  const inserted = await (await database()).$queryRaw`INSERT INTO public.users (id, identity_provider_user_id)
    SELECT * FROM unnest(${ids}::uuid[], ${identityProviderUserIds}::text[]) AS link (id, user_id)
    WHERE public.forgotten_until(user_id, to_timestamp(${issuedAt}::float8)) IS NULL
    ON CONFLICT (identity_provider_user_id) DO NOTHING
    RETURNING identity_provider_user_id AS "user", id`;
  return new Map(Inserted.parse(inserted).map(({ user, id }) => [user, id]));
}

const Expiries = z.array(z.object({ id: z.string(), until: z.number() }));

/**
 * Returns the ids that belong to forgotten users. The value of each id is the time at which its entry expires, in milliseconds
 * since 1970. `issuedAt` is the issue time of a session token, in seconds since 1970. If `issuedAt` is set, omits users that
 * were forgotten before the token was issued, because such a token may link the user again.
 */
export async function forgottenUntil(
  identityProviderUserIds: readonly string[],
  issuedAt: number | null = null,
): Promise<ReadonlyMap<string, number>> {
  if (identityProviderUserIds.length === 0) return new Map();
  const found = await (await database()).$queryRaw`SELECT * FROM (
      SELECT id, (extract(epoch FROM public.forgotten_until(id, to_timestamp(${issuedAt}::float8))) * 1000)::float8 AS until
      FROM unnest(${identityProviderUserIds}::text[]) AS id) AS checked
    WHERE until IS NOT NULL`;
  return new Map(Expiries.parse(found).map(({ id, until }) => [id, until]));
}

const Tenants = z.array(z.object({ id: z.guid() }));

async function findTenant(organizationId: string): Promise<string | undefined> {
  const found = await (await database()).$queryRaw`SELECT id FROM public.tenants
    WHERE identity_provider_organization_id = ${organizationId}`;
  return Tenants.parse(found)[0]?.id;
}

async function insertTenant(organizationId: string): Promise<string | undefined> {
  const inserted = await (await database())
    .$queryRaw`INSERT INTO public.tenants (id, identity_provider_organization_id)
    VALUES (${uuidV7()}::uuid, ${organizationId})
    ON CONFLICT (identity_provider_organization_id) DO NOTHING
    RETURNING id`;
  return Tenants.parse(inserted)[0]?.id;
}

interface Batch {
  readonly ids: Set<string>;
  readonly found: Promise<ReadonlyMap<string, string | null>>;
}

/** The lookups of users in the current event loop iteration. */
let batch: Batch | undefined;

function openBatch(): Batch {
  const ids = new Set<string>();
  const found = new Promise(setImmediate).then(() => {
    batch = undefined;
    return linkedUserIds([...ids]);
  });
  return { ids, found };
}

/**
 * Returns the internal id of a user or an organization. Returns undefined if there is none, and null for an expired previous id.
 * The lookups of users in an event loop iteration share a statement, because a lookup of many users costs little more than a
 * lookup of one.
 */
export async function findLink(kind: Kind, providerId: string): Promise<string | null | undefined> {
  if (kind === 'tenant') return findTenant(providerId);
  batch ??= openBatch();
  batch.ids.add(providerId);
  return (await batch.found).get(providerId);
}

/** Inserts a link and returns the internal id, or undefined if there is one or the user is forgotten. */
export const insertLink = async (
  kind: Kind,
  providerId: string,
  issuedAt?: number,
): Promise<string | undefined> =>
  kind === 'tenant' ? insertTenant(providerId) : (await insertLinks([providerId], issuedAt)).get(providerId);

/** Returns true for a forgotten user, unless the token was issued after the deletion. */
export const isForgotten = async (kind: Kind, providerId: string, issuedAt?: number): Promise<boolean> =>
  kind === 'user' && (await forgottenUntil([providerId], issuedAt)).size > 0;

import { v7 as uuidV7 } from 'uuid';
import * as z from 'zod/mini';
import { batch } from '../core/async';
import type { Kind, Stored } from '../core/ports';

/**
 * Kinds of internal ids: the table, and the column of the provider's id. A tenant is an organization. Each kind has a table,
 * because foreign keys of other tables refer to it, and its unique key makes a link exactly once.
 */
export const KINDS = {
  user: { table: 'users', column: 'identity_provider_user_id' },
  tenant: { table: 'tenants', column: 'identity_provider_organization_id' },
} as const;

// A forgotten id is one whose link an operator has deleted. The table `forgotten_users` has a keyed hash of the id, the time of
// the deletion and an expiry. The key is a random value in the database and not derived from a secret, because all processes need
// the same key while secrets are rotated. The role of the service cannot read the key or the table, but can call SQL functions
// that do.

/** Loads the database client on first use, because a process that finds its ids in the cache never needs it. */
const storage = () => import('../storage/database');

const Links = z.array(z.object({ providerId: z.string(), id: z.nullable(z.guid()) }));

/**
 * Returns the links of ids. Omits an id that is `none`, which includes one whose row was deleted (see `forgottenUntil`).
 * `forgotten` is an expired previous id, which a user or tenant had before a relink, and a tenant with a pending deletion. Runs
 * one statement. Passes database errors through.
 */
export async function findLinks(
  kind: Kind,
  providerIds: readonly string[],
): Promise<ReadonlyMap<string, Stored>> {
  const { database, raw, sql } = await storage();
  const [table, column] = [raw(KINDS[kind].table), raw(KINDS[kind].column)];
  // A user stays until the deletion. A lookup takes no lock, so that a long deletion delays no other id.
  const id =
    kind === 'user' ? raw('id') : sql`CASE WHEN public.tenant_deletion_due(${column}) IS NULL THEN id END`;
  const found = await database().$queryRaw`
    SELECT ${column} AS "providerId", ${id} AS id FROM public.${table} WHERE ${column} = ANY (${providerIds}::text[])
    UNION ALL SELECT * FROM public.previous_links(${kind}, ${providerIds}::text[])`;
  return new Map(
    Links.parse(found).map(({ providerId, id: internalId }) => [
      providerId,
      internalId === null ? { state: 'forgotten' } : { state: 'linked', id: internalId },
    ]),
  );
}

const Inserted = z.array(z.object({ providerId: z.string(), id: z.guid() }));

/**
 * Inserts links for ids that have none, and returns the internal ids of the inserted rows by the ids at the provider. Skips
 * forgotten ids, unless the session token was issued after the deletion: `issuedAt`, in seconds since 1970, or null without a
 * token. The statement names the conflict target, so it fails without the unique key instead of creating a second link.
 */
export async function insertLinks(
  kind: Kind,
  providerIds: readonly string[],
  issuedAt: number | null = null,
): Promise<ReadonlyMap<string, string>> {
  const { database, raw } = await storage();
  const [table, column] = [raw(KINDS[kind].table), raw(KINDS[kind].column)];
  const ids = providerIds.map(() => uuidV7());
  const inserted = await database().$queryRaw`INSERT INTO public.${table} (id, ${column})
    SELECT * FROM unnest(${ids}::uuid[], ${providerIds}::text[]) AS link (id, provider_id)
    WHERE public.forgotten_until(${kind}, provider_id, to_timestamp(${issuedAt}::float8)) IS NULL
    ON CONFLICT (${column}) DO NOTHING
    RETURNING ${column} AS "providerId", id`;
  return new Map(Inserted.parse(inserted).map(({ providerId, id }) => [providerId, id]));
}

const Expiries = z.array(z.object({ id: z.string(), until: z.number() }));

/**
 * Returns the forgotten ids, each with the time at which its entry expires or the deletion of its tenant is due, in milliseconds
 * since 1970. With the issue time of a session token (`issuedAt`), omits ids that were forgotten before, because it may link them
 * again.
 */
export async function forgottenUntil(
  kind: Kind,
  ids: readonly string[],
  issuedAt: number | null = null,
): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map();
  const { database } = await storage();
  const found = await database().$queryRaw`SELECT * FROM (
      SELECT id, (extract(epoch FROM public.forgotten_until(${kind}, id, to_timestamp(${issuedAt}::float8))) * 1000)::float8 AS until
      FROM unnest(${ids}::text[]) AS id) AS checked
    WHERE until IS NOT NULL`;
  return new Map(Expiries.parse(found).map(({ id, until }) => [id, until]));
}

const find = (kind: Kind) =>
  batch(async (providerIds: readonly string[]) => {
    const links = await findLinks(kind, [...new Set(providerIds)]);
    return providerIds.map((id): Stored => links.get(id) ?? { state: 'none' });
  });
const finders = { user: find('user'), tenant: find('tenant') };

/** Returns a link. The calls of an event loop iteration share a statement, because a lookup of many ids costs little more. */
export const findLink = (kind: Kind, providerId: string): Promise<Stored> => finders[kind](providerId);

/** Inserts a link and returns the internal id, or undefined if `insertLinks` inserts none. */
export const insertLink = async (
  kind: Kind,
  providerId: string,
  issuedAt?: number,
): Promise<string | undefined> => (await insertLinks(kind, [providerId], issuedAt)).get(providerId);

/** Returns true for a forgotten id, unless the token was issued after the deletion. */
export const isForgotten = async (kind: Kind, providerId: string, issuedAt?: number): Promise<boolean> =>
  (await forgottenUntil(kind, [providerId], issuedAt)).size > 0;

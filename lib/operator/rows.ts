import * as z from 'zod/mini';
import type { Kind } from '../core/ports';
import { findLinks, forgottenUntil, KINDS } from '../ids/store';
import { database, raw, sql, type Transaction } from '../storage/database';

/** What a command did for one user or organization. With a `reason`, the user needs a decision of the operator. */
export interface LinkResult {
  /** The id at the identity provider. */
  readonly id: string;
  readonly outcome: string;
  readonly reason?: string;
}

/**
 * Schema of a time that a statement selects in milliseconds since 1970. For a `timestamptz`, @prisma/adapter-pg 7.10 returns
 * another time if the time zone of the session is not UTC.
 */
export const Time = z.pipe(
  z.number(),
  z.transform((milliseconds) => new Date(milliseconds)),
);

type Sql = ReturnType<typeof sql>;
const Ids = z.array(z.object({ id: z.string() }));

/** Returns the ids that a statement selects as `id`. */
export const selectIds = async (statement: Sql, client: Transaction = database()): Promise<string[]> =>
  Ids.parse(await client.$queryRaw(statement)).map(({ id }) => id);

const Links = z.array(
  z.object({
    internalId: z.string(),
    providerId: z.string(),
    previousIds: z.array(z.object({ providerId: z.string(), expiresAt: Time })),
  }),
);

/**
 * A row of a kind's table, and the rows of its previous ids. A relink replaced these former ids at the identity provider. The
 * service accepts each until `expiresAt`.
 */
export type LinkRow = Readonly<z.infer<typeof Links>[number]>;

/** Returns up to `limit` links that match the condition, sorted by internal id. */
export async function readRows(
  kind: Kind,
  condition: Sql,
  limit: number,
  client: Transaction = database(),
): Promise<LinkRow[]> {
  const { table, column } = KINDS[kind];
  const rows = await client.$queryRaw`
    SELECT id AS "internalId", ${raw(column)} AS "providerId", coalesce((
        SELECT json_agg(json_build_object('providerId', provider_id,
                                          'expiresAt', extract(epoch FROM expires_at) * 1000) ORDER BY expires_at DESC)
        FROM public.previous_ids WHERE kind = ${kind} AND internal_id = linked.id), '[]') AS "previousIds"
    FROM public.${raw(table)} AS linked WHERE ${condition} ORDER BY id LIMIT ${limit}`;
  return Links.parse(rows);
}

/** Returns all ids of a user or tenant at the identity provider, the present one first. */
export const allIdsOf = ({ providerId, previousIds }: Omit<LinkRow, 'internalId'>): string[] => [
  providerId,
  ...previousIds.map((previous) => previous.providerId),
];

/** Returns the internal ids of the ids that are linked (see `findLinks`), and which of the other ids are forgotten. */
export async function lookUp(kind: Kind, providerIds: readonly string[]) {
  const linked = await findLinks(kind, providerIds);
  const forgotten = await forgottenUntil(
    kind,
    providerIds.filter((id) => !linked.has(id)),
  );
  return { linked, forgotten };
}

/** Returns up to `limit` rows after the row of `internalId` or, if it is undefined, from the start. Sorts by internal id. */
export const rowsAfter = (kind: Kind, internalId: string | undefined, limit: number): Promise<LinkRow[]> =>
  readRows(kind, internalId === undefined ? sql`true` : sql`id > ${internalId}::uuid`, limit);

/** Returns the condition of the rows with this present or previous id of the provider, or with this internal id. */
export function hasId(kind: Kind, providerId: string, internalId: string | null = null): Sql {
  const { table, column } = KINDS[kind];
  return sql`id IN (
    SELECT id FROM public.${raw(table)} WHERE ${raw(column)} = ${providerId}
    UNION SELECT internal_id FROM public.previous_ids WHERE kind = ${kind} AND provider_id = ${providerId}
    UNION SELECT ${internalId}::uuid)`;
}

/**
 * Returns the rows with this internal id, or with this present or previous id of the provider. There are two rows if the id is
 * the internal id of one row and the provider's id of another.
 */
export const findRows = (kind: Kind, eitherId: string): Promise<LinkRow[]> =>
  readRows(kind, hasId(kind, eitherId, z.guid().safeParse(eitherId).data), 2);

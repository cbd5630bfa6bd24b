import { randomBytes } from 'node:crypto';
import * as z from 'zod/mini';
import type { Kind } from '../core/ports';
import { KINDS } from '../ids/store';
import { database, raw, sql, type Transaction } from '../storage/database';
import { findRows, Time } from './rows';

type Operation = 'forget' | 'remember' | 'due' | 'relink' | 'rollback' | 'adopt' | 'publish' | 'schedule';

/** An operator or an event that changes links, the reason, and the id of the run of a bulk command. */
export interface Change {
  readonly by: string;
  readonly reason?: string | undefined;
  readonly run?: string | undefined;
}

/** Returns a new id for a run. */
export const newRun = (): string => randomBytes(8).toString('hex');

/** Returns the expression for the first 16 hexadecimal digits of the keyed hash that identifies an id in `forgotten_users`. */
export const idHash = (kind: Kind, id: ReturnType<typeof sql>) =>
  sql`left(encode(public.forgotten_hash(${kind}, ${id}), 'hex'), 16)`;

/**
 * Writes a row for each id into the append-only table `link_changes`, with the internal id of the row that has this id when the
 * statement runs, or with `internalId` if there is none. The transaction must be that of the change.
 */
export const recordChanges = (
  transaction: Transaction,
  kind: Kind,
  operation: Operation,
  { by, reason, run }: Change,
  providerIds: readonly string[],
  internalId: string | null = null,
) =>
  transaction.$executeRaw`
    INSERT INTO public.link_changes (kind, operation, internal_id, id_hash, run, changed_by, reason)
    SELECT ${kind}, ${operation}, coalesce(present.id, ${internalId}::uuid), ${idHash(kind, raw('changed.id'))}, ${run ?? null}, ${by}, ${reason ?? null}
    FROM unnest(${providerIds}::text[]) AS changed (id)
    LEFT JOIN public.${raw(KINDS[kind].table)} AS present ON present.${raw(KINDS[kind].column)} = changed.id`;

/** Writes the row of a run, with the number of users or tenants for each outcome. */
export const recordRun = (
  kind: Kind,
  operation: Operation,
  { by, reason, run }: Change,
  counts: Readonly<Record<string, number>>,
) =>
  database().$executeRaw`
    INSERT INTO public.link_changes (kind, operation, run, counts, changed_by, reason)
    VALUES (${kind}, ${operation}, ${run ?? null}, ${JSON.stringify(counts)}::jsonb, ${by}, ${reason ?? null})`;

const RecordedChange = z.object({
  changedAt: Time,
  operation: z.string(),
  internalId: z.nullable(z.string()),
  idHash: z.nullable(z.string()),
  run: z.nullable(z.string()),
  counts: z.nullable(z.record(z.string(), z.number())),
  by: z.string(),
  reason: z.nullable(z.string()),
});

/** A row of the history, or the JSON of a row whose values have another form. */
export type RecordedChange = z.infer<typeof RecordedChange> | { readonly unreadable: string };

/**
 * Returns up to `limit` rows of a kind, the newest first: those of the run with this id, and of the user or tenant with this
 * internal id or id at the provider, also a forgotten one. Without an id, returns the rows of all.
 */
export async function readHistory(kind: Kind, id: string | null, limit: number): Promise<RecordedChange[]> {
  const links = id === null ? [] : await findRows(kind, id);
  const internalIds = [...links.map(({ internalId }) => internalId), z.guid().safeParse(id).data ?? null];
  // The subquery hashes the id once and not for each row.
  const hash = sql`(SELECT ${idHash(kind, sql`${id}`)})`;
  const isOfLink = sql`internal_id = ANY (${internalIds}::uuid[]) OR id_hash = ${hash}`;
  // Only a row that has both ids leads from one id of a forgotten user to the other. Arrays, and a condition only with an id, let
  // PostgreSQL use the indexes.
  const isAsked = sql`run = ${id} OR ${isOfLink} OR internal_id = ANY (ARRAY(SELECT internal_id FROM named))
    OR id_hash = ANY (ARRAY(SELECT id_hash FROM named))`;
  const found = await database().$queryRaw`
    WITH named AS (SELECT internal_id, id_hash FROM public.link_changes WHERE kind = ${kind} AND (${isOfLink}))
    SELECT (extract(epoch FROM changed_at) * 1000)::float8 AS "changedAt", operation, internal_id AS "internalId",
           id_hash AS "idHash", run, counts, changed_by AS by, reason
    FROM public.link_changes
    WHERE kind = ${kind} AND (${id === null ? sql`true` : isAsked}) ORDER BY changed_at DESC LIMIT ${limit}`;
  return z
    .array(z.unknown())
    .parse(found)
    .map((row) => {
      const { data } = RecordedChange.safeParse(row);
      return data ?? { unreadable: JSON.stringify(row) };
    });
}

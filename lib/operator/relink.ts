import { createHash } from 'node:crypto';
import * as z from 'zod/mini';
import { TransientError } from '../base/errors';
import { type RetryOptions, retry, retryOnConflict } from '../base/retry';
import type { Kind } from '../core/ports';
import { uncache } from '../ids/cache';
import { KINDS } from '../ids/store';
import { database, raw, sql, type Transaction } from '../storage/database';
import { restoreLinks, TRANSACTION } from './delete-link';
import { type Change, recordChanges } from './history';
import { type Collision, type MapLine, repeatedIds } from './relink-map';
import { type LinkResult, selectIds } from './rows';

/** Number of users in one transaction. A transaction holds two advisory locks and one row lock for each of its users. */
const BATCH = 200;

export interface RelinkOptions extends Change {
  readonly kind: Kind;
  /** Id of the run in the journal. */
  readonly run: string;
  /** True if the run undoes another one. */
  readonly isRollback?: boolean;
  /** Days for which the previous ids are accepted. */
  readonly days: number;
  /** Checks the lines, but does not change any row. */
  readonly dryRun?: boolean;
  readonly retryOptions: RetryOptions;
}

/** Returns the id of a run: a hash of its map, so that a run that continues an interrupted one has the same id. */
export function runOf(lines: readonly MapLine[]): string {
  const hash = createHash('sha256');
  const sorted = lines.toSorted((one, other) => (one.oldId < other.oldId ? -1 : 1));
  for (const { oldId, newId, collision } of sorted)
    if (!collision) hash.update(JSON.stringify([oldId, newId]));
  return hash.digest('hex').slice(0, 16);
}

/** Returns the id of the run that rolls a run back. */
export const rollbackOf = (run: string): string =>
  createHash('sha256').update(`rollback of ${run}`).digest('hex').slice(0, 16);

const Journal = z.array(z.object({ oldId: z.string(), newId: z.string() }));

/** Returns the map that undoes a run. It is empty if the run has no rows in the table of previous ids, which is its journal. */
export async function readJournal(kind: Kind, run: string, retryOptions: RetryOptions): Promise<MapLine[]> {
  const rows = await retry(
    retryOptions,
    () => database().$queryRaw`SELECT replaced_by AS "oldId", provider_id AS "newId"
      FROM public.previous_ids WHERE kind = ${kind} AND run = ${run} ORDER BY provider_id`,
  );
  return Journal.parse(rows).map((ids, index) => ({ ...ids, line: index + 1 }));
}

/** What the tables say about an id: the row that has it, the row that had it and the present id of that row. */
const KnownIds = z.array(
  z.object({
    id: z.string(),
    internalId: z.nullable(z.string()),
    previousOf: z.nullable(z.string()),
    movedTo: z.nullable(z.string()),
    isPending: z.boolean(),
  }),
);

/** Result for one line of the map. The reason of a collision is the key of its remedy. */
export interface RelinkResult extends LinkResult, MapLine {
  readonly outcome: 'to move' | 'moved' | 'already moved' | 'collision';
}

/** Returns the ids of the lines without a collision. */
const idsOf = (lines: readonly MapLine[]): string[] =>
  lines.flatMap(({ oldId, newId, collision }) => (collision ? [] : [oldId, newId]));

/**
 * Returns the states of the lines. The SQL function `forgotten_until` takes a shared advisory lock for each id until the
 * transaction ends, and a deletion (lib/operator/forget.ts) takes the exclusive one. The first statement therefore waits for the
 * deletion of these users in flight, and the second statement sees the result. A later deletion waits for this transaction.
 */
async function statesOf(transaction: Transaction, kind: Kind, lines: readonly MapLine[]) {
  const { table, column } = KINDS[kind];
  const ids = idsOf(lines);
  const found = sql`SELECT id FROM unnest(${ids}::text[]) AS id
    WHERE public.forgotten_until(${kind}, id, NULL) IS NOT NULL`;
  const forgotten = new Set(await selectIds(found, transaction));
  const rows = await transaction.$queryRaw`
    SELECT line.id, present.id AS "internalId", previous.internal_id AS "previousOf", moved.${raw(column)} AS "movedTo",
           due_at IS NOT NULL AS "isPending"
    FROM unnest(${ids}::text[]) AS line (id)
    LEFT JOIN public.${raw(table)} present ON present.${raw(column)} = line.id
    LEFT JOIN public.previous_ids previous ON previous.kind = ${kind} AND previous.provider_id = line.id
    LEFT JOIN public.${raw(table)} moved ON moved.id = previous.internal_id
    LEFT JOIN public.pending_deletions pending ON pending.kind = ${kind} AND pending.provider_id = line.id`;
  const known = new Map(KnownIds.parse(rows).map((each) => [each.id, each]));
  const stateOf = ({ oldId, newId, collision }: MapLine): Collision | 'to move' | 'moved' => {
    if (collision) return collision;
    if (oldId === newId) return 'old and new id are the same';
    const [old, next] = [known.get(oldId), known.get(newId)];
    if (!old?.internalId) {
      if (old?.movedTo) return old.movedTo === newId ? 'moved' : 'old id was moved to another id';
      return forgotten.has(oldId) ? 'old id is forgotten' : 'unknown old id';
    }
    if (old.isPending) return 'old id has a pending deletion';
    if (next?.internalId) return 'new id is linked to another internal id';
    if (next?.isPending || (kind === 'user' && forgotten.has(newId)))
      return 'new id is forgotten or has a pending deletion';
    return (next?.previousOf ?? old.internalId) === old.internalId
      ? 'to move'
      : 'new id is a previous id of another internal id';
  };
  return lines.map((line) => ({ line, state: stateOf(line) }));
}

/**
 * Gives rows their new ids. In a rollback, the new id is a previous id of the same row, which is deleted first, because an id
 * cannot be both. If the new id has become a previous id of another row, the trigger of the table rejects it.
 */
async function move(
  transaction: Transaction,
  lines: readonly MapLine[],
  options: RelinkOptions,
): Promise<void> {
  const { kind, run, days } = options;
  const { table, column } = KINDS[kind];
  const [oldIds, newIds] = [lines.map(({ oldId }) => oldId), lines.map(({ newId }) => newId)];
  await recordChanges(transaction, kind, options.isRollback ? 'rollback' : 'relink', options, oldIds);
  await transaction.$executeRaw`
    DELETE FROM public.previous_ids
    USING unnest(${oldIds}::text[], ${newIds}::text[]) AS line (old_id, new_id)
    JOIN public.${raw(table)} AS present ON present.${raw(column)} = old_id
    WHERE kind = ${kind} AND provider_id = new_id AND internal_id = present.id`;
  const moved = await transaction.$executeRaw`
    WITH moved AS (
      UPDATE public.${raw(table)} SET ${raw(column)} = new_id
      FROM unnest(${oldIds}::text[], ${newIds}::text[]) AS line (old_id, new_id)
      WHERE ${raw(column)} = old_id
      RETURNING id, old_id, new_id)
    INSERT INTO public.previous_ids (kind, provider_id, internal_id, replaced_by, run, expires_at)
    SELECT ${kind}, old_id, id, new_id, ${run}, now() + ${days} * interval '1 day' FROM moved`;
  // An operator who names a forgotten organization wants its id back.
  await restoreLinks(transaction, kind, newIds);
  if (moved !== lines.length) throw new TransientError('Another transaction has changed a row');
}

/** Checks a batch and moves its users in one transaction. */
function relinkBatch(batch: readonly MapLine[], options: RelinkOptions) {
  return retryOnConflict(() =>
    database().$transaction(async (transaction) => {
      // The limit is below `deadlock_timeout` (1 s). In a deadlock, this transaction therefore fails, and not the transaction
      // of a request.
      await transaction.$executeRaw`SET LOCAL lock_timeout = '500ms'`;
      const states = await statesOf(transaction, options.kind, batch);
      const toMove = states.flatMap(({ line, state }) => (state === 'to move' ? [line] : []));
      if (!options.dryRun) await move(transaction, toMove, options);
      return states;
    }, TRANSACTION),
  );
}

/**
 * Replaces the ids of users or tenants at the provider in batches of one transaction, also during live traffic. Each keeps its
 * internal id, and the old id is accepted until it expires. Skips lines that an earlier run has applied, and those with a
 * collision.
 *
 * Deletes the cache entries of both ids after the commit, because until then only the old id leads to the row. If the command
 * ends before that, the next run deletes the entries.
 *
 * Throws if the database rejects a statement, or if the database or the cache fails for longer than `retryOptions.seconds`.
 */
export async function* relink(
  lines: readonly MapLine[],
  options: RelinkOptions,
): AsyncGenerator<RelinkResult[]> {
  const reused = repeatedIds(idsOf(lines));
  for (let at = 0; at < lines.length; at += BATCH) {
    const batch = lines.slice(at, at + BATCH);
    const states = await retry(options.retryOptions, () => relinkBatch(batch, options));
    const moved = states.flatMap(({ line, state }) =>
      state === 'to move' || state === 'moved' ? [line] : [],
    );
    if (!options.dryRun && moved.length > 0)
      await retry(options.retryOptions, () => uncache(options.kind, idsOf(moved)));
    yield states.map(({ line, state }): RelinkResult => {
      const result = { ...line, id: line.oldId };
      if (state === 'moved') return { ...result, outcome: 'already moved' };
      if (state === 'to move') return { ...result, outcome: options.dryRun ? 'to move' : 'moved' };
      const isReused = state === 'new id is linked to another internal id' && reused.has(line.newId);
      const reason = isReused ? 'new id is the old id of another line' : state;
      return { ...result, outcome: 'collision', reason };
    });
  }
}

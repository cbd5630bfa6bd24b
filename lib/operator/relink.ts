import { createHash } from 'node:crypto';
import * as z from 'zod/mini';
import { TransientError } from '../base/errors';
import { type RetryOptions, retry, retryOnConflict } from '../base/retry';
import type { Kind } from '../core/ports';
import { uncache } from '../ids/cache';
import { KINDS } from '../ids/store';
import { database, raw, type Transaction } from '../storage/database';
import { restoreLinks, TRANSACTION } from './delete-link';
import { type Change, recordChanges } from './history';
import { type CheckedMap, type Collision, type MapLine, REMEDIES, repeatedIds } from './relink-map';
import type { LinkResult } from './result';

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

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);

/**
 * Returns the id of a run, which is a hash of its map (old and new ids). A run that continues an interrupted run has the same
 * map and therefore the same id, so that one rollback undoes both runs.
 */
export function runOf(lines: readonly MapLine[]): string {
  const hash = createHash('sha256');
  const sorted = lines.toSorted((one, other) => (one.oldId < other.oldId ? -1 : 1));
  for (const { oldId, newId } of sorted) hash.update(JSON.stringify([oldId, newId]));
  return hash.digest('hex').slice(0, 16);
}

/** Returns the id of the run that rolls a run back. */
export const rollbackOf = (run: string): string => digest(`rollback of ${run}`);

const Journal = z.array(z.object({ oldId: z.string(), newId: z.string() }));

/** Returns the map that undoes a run. It is empty if the run has no rows in the table of previous ids, which is its journal. */
export async function readJournal(kind: Kind, run: string, retryOptions: RetryOptions): Promise<CheckedMap> {
  const { previousIds, column } = KINDS[kind];
  const rows = await retry(
    retryOptions,
    () => database().$queryRaw`SELECT replaced_by AS "oldId", ${raw(column)} AS "newId"
      FROM public.${raw(previousIds)} WHERE run = ${run} ORDER BY ${raw(column)}`,
  );
  const lines = Journal.parse(rows).map((ids, index) => ({ ...ids, line: index + 1 }));
  return { lines, collisions: [] };
}

const Forgotten = z.array(z.object({ id: z.string() }));
const Moved = z.array(z.object({ providerId: z.string(), internalId: z.string() }));
const States = z.array(z.object({ position: z.number(), state: z.string() }));

/** Result for one line of the map. */
export interface RelinkResult extends LinkResult, MapLine {
  readonly outcome: 'to move' | 'moved' | 'already moved' | 'collision';
}

const isCollision = (state: string): state is Collision['kind'] => Object.hasOwn(REMEDIES, state);

/** Returns the result for a line that cannot be applied. */
export const collisionOf = ({ kind, ...line }: Collision): RelinkResult => ({
  ...line,
  id: line.oldId,
  outcome: 'collision',
  reason: kind,
});

/**
 * Returns the states of the lines. The SQL function `forgotten_until` takes a shared advisory lock for each id until the
 * transaction ends, and a deletion (lib/operator/forget.ts) takes the exclusive one. The first statement therefore waits for the
 * deletion of these users in flight, and the second statement sees the result. A later deletion waits for this transaction.
 */
async function statesOf(transaction: Transaction, kind: Kind, lines: readonly MapLine[]) {
  const { table, column, previousIds, owner, pendingDeletions } = KINDS[kind];
  const [oldIds, newIds] = [lines.map(({ oldId }) => oldId), lines.map(({ newId }) => newId)];
  const found = await transaction.$queryRaw`SELECT id FROM unnest(${[...oldIds, ...newIds]}::text[]) AS id
    WHERE public.forgotten_until(${kind}, id, NULL) IS NOT NULL`;
  const forgotten = Forgotten.parse(found).map(({ id }) => id);
  // `moved` is the row of the old id if an earlier run has moved it. `taken` is the row of the new id, and `earlier` the row
  // whose previous id is the new id.
  const rows = await transaction.$queryRaw`
    SELECT position::int, CASE
        WHEN old_id = new_id THEN 'old and new id are the same'
        WHEN present.id IS NULL AND moved.${raw(column)} = new_id THEN 'moved'
        WHEN present.id IS NULL AND moved.id IS NOT NULL THEN 'old id was moved to another id'
        WHEN present.id IS NULL AND old_id = ANY (${forgotten}::text[]) THEN 'old id is forgotten'
        WHEN present.id IS NULL THEN 'unknown old id'
        WHEN pending.due_at IS NOT NULL THEN 'old id has a pending deletion'
        WHEN taken.id IS NOT NULL THEN 'new id is linked to another internal id'
        WHEN due.due_at IS NOT NULL OR (${kind} = 'user' AND new_id = ANY (${forgotten}::text[]))
          THEN 'new id is forgotten or has a pending deletion'
        WHEN earlier.${raw(owner)} <> present.id THEN 'new id is a previous id of another internal id'
        ELSE 'to move' END AS state
    FROM unnest(${oldIds}::text[], ${newIds}::text[]) WITH ORDINALITY AS line (old_id, new_id, position)
    LEFT JOIN public.${raw(table)} present ON present.${raw(column)} = old_id
    LEFT JOIN public.${raw(previousIds)} previous ON previous.${raw(column)} = old_id
    LEFT JOIN public.${raw(table)} moved ON moved.id = previous.${raw(owner)}
    LEFT JOIN public.${raw(table)} taken ON taken.${raw(column)} = new_id
    LEFT JOIN public.${raw(previousIds)} earlier ON earlier.${raw(column)} = new_id
    LEFT JOIN public.${raw(pendingDeletions)} pending ON pending.${raw(column)} = old_id
    LEFT JOIN public.${raw(pendingDeletions)} due ON due.${raw(column)} = new_id`;
  const states = new Map(States.parse(rows).map(({ position, state }) => [position, state]));
  return lines.map((line, index) => ({ line, state: states.get(index + 1) ?? 'unknown old id' }));
}

/**
 * Gives rows their new ids. If a run rolls back an earlier run, the new id is a previous id of the same row. Such a previous id
 * is deleted first, because an id cannot be a present and a previous id at once. If the new id has become a previous id of
 * another row, the trigger of the table rejects it.
 */
async function move(
  transaction: Transaction,
  lines: readonly MapLine[],
  options: RelinkOptions,
): Promise<void> {
  const { kind, run, days } = options;
  const { table, column, previousIds, owner } = KINDS[kind];
  const [oldIds, newIds] = [lines.map(({ oldId }) => oldId), lines.map(({ newId }) => newId)];
  await transaction.$executeRaw`
    DELETE FROM public.${raw(previousIds)} AS previous
    USING unnest(${oldIds}::text[], ${newIds}::text[]) AS line (old_id, new_id)
    JOIN public.${raw(table)} AS present ON present.${raw(column)} = old_id
    WHERE previous.${raw(column)} = new_id AND ${raw(owner)} = present.id`;
  const rows = await transaction.$queryRaw`
    WITH moved AS (
      UPDATE public.${raw(table)} SET ${raw(column)} = new_id
      FROM unnest(${oldIds}::text[], ${newIds}::text[]) AS line (old_id, new_id)
      WHERE ${raw(column)} = old_id
      RETURNING id, old_id, new_id)
    INSERT INTO public.${raw(previousIds)} (${raw(column)}, ${raw(owner)}, replaced_by, run, expires_at)
    SELECT old_id, id, new_id, ${run}, now() + ${days} * interval '1 day' FROM moved
    RETURNING ${raw(column)} AS "providerId", ${raw(owner)} AS "internalId"`;
  const moved = Moved.parse(rows);
  await recordChanges(transaction, kind, options.isRollback ? 'rollback' : 'relink', options, moved);
  // An operator who names a forgotten organization wants its id back.
  await restoreLinks(transaction, kind, newIds);
  if (moved.length !== lines.length) throw new TransientError('Another transaction has changed a row');
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
 * Replaces the identity-provider user ids of users in batches of one transaction, also during live traffic. Each user keeps the
 * internal id, and the old id is accepted until it expires. A second run skips the users that have moved. A user whose line has
 * a collision does not move.
 *
 * Deletes the cache entries of both ids after the commit. No lookup then caches a wrong internal id: before the commit, only the
 * old id leads to the user, and afterwards both do. If the command ends before the deletion, the next run deletes the entries.
 *
 * Throws if the database rejects a statement, or if the database or the cache fails for longer than `retryOptions.seconds`.
 */
export async function* relink(
  lines: readonly MapLine[],
  options: RelinkOptions,
): AsyncGenerator<RelinkResult[]> {
  const reused = repeatedIds(lines.flatMap(({ oldId, newId }) => [oldId, newId]));
  for (let at = 0; at < lines.length; at += BATCH) {
    const batch = lines.slice(at, at + BATCH);
    const states = await retry(options.retryOptions, () => relinkBatch(batch, options));
    const moved = states.filter(({ state }) => !isCollision(state));
    const ids = moved.flatMap(({ line: { oldId, newId } }) => [oldId, newId]);
    if (!options.dryRun && ids.length > 0)
      await retry(options.retryOptions, () => uncache(options.kind, ids));
    yield states.map(({ line, state }): RelinkResult => {
      if (state === 'new id is linked to another internal id' && reused.has(line.newId))
        return collisionOf({ ...line, kind: 'new id is the old id of another line' });
      if (isCollision(state)) return collisionOf({ ...line, kind: state });
      const outcome = state === 'moved' ? 'already moved' : options.dryRun ? 'to move' : 'moved';
      return { ...line, id: line.oldId, outcome };
    });
  }
}

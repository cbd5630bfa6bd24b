import { createHash } from 'node:crypto';
import * as z from 'zod/mini';
import { type RetryOptions, retry, TransientError } from '../concurrency/retry';
import { retryOnConflict } from '../linking/links';
import { database, type Transaction } from '../storage/database';
import { asTransientError } from './database-error';
import { type CheckedMap, type Collision, type CollisionKind, checkMap, type MapLine } from './relink-map';
import { TRANSACTION } from './rows';
import { uncache } from './uncache';

/** Number of users in one transaction. A transaction holds two advisory locks and one row lock for each of its users. */
const BATCH = 200;
/**
 * Number of rows that one statement reads from a journal. A journal consists of the rows that a run added to `previous_ids`.
 */
const JOURNAL_PAGE = 5_000;

/**
 * Result for one batch of lines. Each line moves a user from an old to a new id at the identity provider. `toMove` is the
 * number of users that have moved or, in a dry run, can be moved.
 */
export interface RelinkStep {
  readonly toMove: number;
  readonly alreadyMoved: number;
  readonly collisions: readonly Collision[];
}

export interface RelinkOptions {
  /** Id of the run in the journal. */
  readonly run: string;
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
export const runOf = (lines: readonly MapLine[]): string =>
  digest(JSON.stringify(lines.map(({ oldId, newId }) => [oldId, newId]).sort()));

/** Returns the id of the run that rolls a run back. */
export const rollbackOf = (run: string): string => digest(`rollback of ${run}`);

/** Reads the journal of a run and returns the map that undoes the run. The map is empty if the journal is empty. */
export async function readJournal(run: string, retryOptions: RetryOptions): Promise<CheckedMap> {
  const lines: MapLine[] = [];
  for (let last = ''; ; ) {
    const rows = await retry(retryOptions, () =>
      asTransientError(
        database().previousId.findMany({
          where: { run, identityProviderUserId: { gt: last } },
          orderBy: { identityProviderUserId: 'asc' },
          take: JOURNAL_PAGE,
        }),
      ),
    );
    for (const { replacedBy, identityProviderUserId } of rows) {
      lines.push({ line: lines.length + 1, oldId: replacedBy, newId: identityProviderUserId });
      last = identityProviderUserId;
    }
    if (rows.length < JOURNAL_PAGE) return checkMap(lines);
  }
}

const Forgotten = z.array(z.object({ id: z.string() }));
const Rows = z.array(
  z.object({
    /** User with the old id. */
    userId: z.nullable(z.guid()),
    /** If an earlier run has moved the user with the old id, the present provider id of that user. */
    movedTo: z.nullable(z.string()),
    /** The provider has reported that the user with the old id was deleted (lib/users/pending-deletions.ts). */
    isDeleted: z.boolean(),
    /** User with the new id. */
    takenBy: z.nullable(z.guid()),
    /** User whose previous id is the new id. */
    previouslyOf: z.nullable(z.guid()),
  }),
);
type Row = z.infer<typeof Rows>[number];

function stateOf(
  { oldId, newId }: MapLine,
  { userId, movedTo, isDeleted, takenBy, previouslyOf }: Row,
  forgotten: ReadonlySet<string>,
): 'to move' | 'moved' | CollisionKind {
  if (userId === null) {
    if (movedTo === newId) return 'moved';
    if (movedTo !== null) return 'old id was moved to another id';
    return forgotten.has(oldId) ? 'old id is forgotten' : 'unknown old id';
  }
  if (isDeleted) return 'old id has a pending deletion';
  if (takenBy !== null) return 'new id is linked to another internal id';
  if (forgotten.has(newId)) return 'new id is forgotten';
  if (previouslyOf !== null && previouslyOf !== userId) return 'new id is a previous id of another user';
  return 'to move';
}

/**
 * Returns the states of the lines. The SQL function `forgotten_until` takes a shared advisory lock for each id until the
 * transaction ends. The command `users:forget` takes the exclusive lock for the ids of the user that it deletes. The first
 * statement therefore waits for a `users:forget` of these users that is in flight, and the second statement sees the result. A
 * `users:forget` that starts later waits for this transaction.
 */
async function statesOf(transaction: Transaction, lines: readonly MapLine[]) {
  const [oldIds, newIds] = [lines.map(({ oldId }) => oldId), lines.map(({ newId }) => newId)];
  const forgotten = Forgotten.parse(
    await transaction.$queryRaw`SELECT id FROM unnest(${[...oldIds, ...newIds]}::text[]) AS id
      WHERE public.forgotten_until(id, NULL) IS NOT NULL`,
  );
  const rows = Rows.parse(
    await transaction.$queryRaw`
      SELECT owner.id AS "userId", moved.identity_provider_user_id AS "movedTo", taken.id AS "takenBy",
             earlier.user_id AS "previouslyOf", pending.due_at IS NOT NULL AS "isDeleted"
      FROM unnest(${oldIds}::text[], ${newIds}::text[]) WITH ORDINALITY AS line (old_id, new_id, position)
      LEFT JOIN public.users owner ON owner.identity_provider_user_id = old_id
      LEFT JOIN public.previous_ids previous ON previous.identity_provider_user_id = old_id
      LEFT JOIN public.users moved ON moved.id = previous.user_id
      LEFT JOIN public.users taken ON taken.identity_provider_user_id = new_id
      LEFT JOIN public.previous_ids earlier ON earlier.identity_provider_user_id = new_id
      LEFT JOIN public.pending_deletions pending ON pending.identity_provider_user_id = old_id
      ORDER BY position`,
  );
  const forgottenIds = new Set(forgotten.map(({ id }) => id));
  return rows.flatMap((row, index) => {
    const line = lines[index];
    return line ? [{ line, state: stateOf(line, row, forgottenIds) }] : [];
  });
}

/**
 * Gives users their new ids. If a run rolls back an earlier run, the new id is a previous id of the same user. Such a previous
 * id is deleted first, because an id cannot be a present and a previous id at once.
 */
async function move(
  transaction: Transaction,
  lines: readonly MapLine[],
  { run, days }: RelinkOptions,
): Promise<void> {
  const [oldIds, newIds] = [lines.map(({ oldId }) => oldId), lines.map(({ newId }) => newId)];
  await transaction.previousId.deleteMany({ where: { identityProviderUserId: { in: newIds } } });
  const moved = await transaction.$executeRaw`
    WITH moved AS (
      UPDATE public.users SET identity_provider_user_id = new_id
      FROM unnest(${oldIds}::text[], ${newIds}::text[]) AS line (old_id, new_id)
      WHERE identity_provider_user_id = old_id
      RETURNING id, old_id, new_id)
    INSERT INTO public.previous_ids (identity_provider_user_id, user_id, replaced_by, run, expires_at)
    SELECT old_id, id, new_id, ${run}, now() + ${days} * interval '1 day' FROM moved`;
  if (moved !== lines.length) throw new TransientError('Another transaction has changed a user');
}

/** Checks a batch and moves its users in one transaction. */
function relinkBatch(batch: readonly MapLine[], options: RelinkOptions) {
  return retryOnConflict(() =>
    database().$transaction(async (transaction) => {
      // The limit is below `deadlock_timeout` (1 s). In a deadlock, this transaction therefore fails, and not the transaction
      // of a request.
      await transaction.$executeRaw`SET LOCAL lock_timeout = '500ms'`;
      const states = await statesOf(transaction, batch);
      const toMove = states.flatMap(({ line, state }) => (state === 'to move' ? [line] : []));
      if (!options.dryRun) await move(transaction, toMove, options);
      return { states, toMove };
    }, TRANSACTION),
  );
}

/**
 * Replaces the identity-provider user ids of users and yields a step for each batch. Each user keeps the internal id. The old
 * id becomes a previous id, which is accepted until it expires. The function can run during live traffic. A second run of the
 * same lines continues an interrupted run, because the second run skips the users that have moved.
 *
 * A batch is one transaction. Before the commit, lookups find a user under the old id. If this run rolls back an earlier run,
 * they also find the user under the new id. After the commit, they find the user under both ids. If a line has a collision, its
 * user does not move, but the other users of the batch do.
 *
 * Deletes the cache entries of both ids after the commit. In this order, no lookup caches a wrong internal id:
 * - An entry of the old id is correct at any time, because the internal id does not change.
 * - Before the commit, the new id has no row or leads to the same user, so no lookup stores a wrong internal id for the new id.
 *   A wrong entry can only exist if an earlier row of the new id was deleted without `users:forget`, because `users:forget`
 *   deletes the entry as well. The deletion after the commit removes a wrong entry.
 * - After the commit, lookups of both ids store the internal id of the user.
 * If the command ends between the commit and the deletion, the next run deletes the entries.
 *
 * Throws if the database rejects a statement, or if the database or the cache fails for longer than `retryOptions.seconds`.
 * The transactions of the yielded steps stay committed.
 */
export async function* relink(lines: readonly MapLine[], options: RelinkOptions): AsyncGenerator<RelinkStep> {
  for (let at = 0; at < lines.length; at += BATCH) {
    const batch = lines.slice(at, at + BATCH);
    const { states, toMove } = await retry(options.retryOptions, () =>
      asTransientError(relinkBatch(batch, options)),
    );
    const alreadyMoved = states.flatMap(({ line, state }) => (state === 'moved' ? [line] : []));
    const ids = [...toMove, ...alreadyMoved].flatMap(({ oldId, newId }) => [oldId, newId]);
    if (!options.dryRun && ids.length > 0) await retry(options.retryOptions, () => uncache(ids));
    const collisions = states.flatMap(({ line, state }) =>
      state === 'to move' || state === 'moved' ? [] : [{ ...line, kind: state }],
    );
    yield { toMove: toMove.length, alreadyMoved: alreadyMoved.length, collisions };
  }
}

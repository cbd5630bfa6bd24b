import { setTimeout as sleep } from 'node:timers/promises';
import { type RetryOptions, retry } from '../base/retry';
import type { Kind } from '../core/ports';
import { uncache } from '../ids/cache';
import { findLinks } from '../ids/store';
import type { Provider } from '../providers';
import { database } from '../storage/database';
import { deleteIfDue, deleteLink, restoreLinks, TRANSACTION } from './delete-link';
import { type Change, recordChanges } from './history';
import { holdersOf } from './paginate';
import {
  cancelDeletion,
  type DueDeletion,
  deletionDueAt,
  dueDeletions,
  finishDeletions,
} from './pending-deletions';
import { allIdsOf, findRows, hasId, readRows } from './rows';

/**
 * Result of `forget`:
 * - `forgotten`: the user is deleted.
 * - `relinked`: the row is deleted, but a registration has linked the user again.
 * - `uncertain`: the row is deleted, but the cache has not confirmed the deletion of its entry.
 */
export type ForgetResult = 'forgotten' | 'relinked' | 'uncertain';

/**
 * Longer than the 3.5 s (QUERY_TIMEOUT_MS, and the time limit of the cache) after which a request that has read a row caches its
 * id.
 */
const LOOKUPS_END_MS = 9_000;

/** Deletes the cache entries, with retries. Returns false if the store does not confirm the deletion. */
const tryUncache = (kind: Kind, providerIds: readonly string[]): Promise<boolean> =>
  retry({ seconds: 3 }, () => uncache(kind, providerIds)).then(
    () => true,
    () => false,
  );

/** Deletes the cache entries of all ids of a user or tenant. Rejects if the cache does not confirm it. */
async function uncacheAll(kind: Kind, providerId: string): Promise<void> {
  const links = await findRows(kind, providerId);
  if (!(await tryUncache(kind, [providerId, ...links.flatMap(allIdsOf)])))
    throw new Error('The cache does not respond. Nothing was deleted.');
}

/** Completes the deletion of ids whose rows are gone, also that of an interrupted `forget`, which says why it waits. */
async function completeDeletion(
  kind: Kind,
  ids: readonly string[],
  pause: () => Promise<unknown> = () => sleep(LOOKUPS_END_MS),
): Promise<ForgetResult> {
  await tryUncache(kind, ids);
  await pause();
  if (!(await tryUncache(kind, ids))) return 'uncertain';
  const linked = await findLinks(kind, ids);
  await finishDeletions(kind, ids);
  return linked.size === 0 ? 'forgotten' : 'relinked';
}

/**
 * Deletes the link of a user and the rows that refer to it by ON DELETE CASCADE. If the result is `forgotten`, there is no row
 * and no cached id under any id of the user. For `days` days, only a session token that was issued after the deletion links the
 * user again.
 *
 * Deletes the cache entries before the row, again after it, and after a pause, because a request that read the row can still
 * cache the id. Until then, requests can get an id without a row. A process that is suspended for longer can cache it even later,
 * so the operator first deletes the user at the provider and waits until the tokens have expired.
 *
 * Rejects if the cache does not respond to the first deletion, if rows of another table need the row, or if the database fails. A
 * call for any id of the user completes an interrupted deletion.
 */
export async function forget(
  kind: Kind,
  providerId: string,
  days: number,
  change: Change,
  pause?: () => Promise<unknown>,
): Promise<ForgetResult> {
  await uncacheAll(kind, providerId);
  return completeDeletion(kind, await deleteLink(kind, providerId, days, change), pause);
}

/**
 * Deletes the entry of a forgotten id, so that any registration links it, and cancels the pending deletions of the ids of its
 * user or tenant, also one of a run that has deleted the row, but has not ended. Returns whether there was an entry that had not
 * expired, and whether a deletion was pending.
 */
export async function remember(kind: Kind, providerId: string, change: Change) {
  const [link] = await readRows(kind, hasId(kind, providerId), 1);
  return database().$transaction(async (transaction) => {
    // A concurrent `finishDeletions` ends first, so that a deletion that it makes pending is cancelled.
    const deleted = await restoreLinks(transaction, kind, [providerId]);
    const isCancelled = await cancelDeletion(kind, link ? allIdsOf(link) : [providerId], false, transaction);
    if (isCancelled || deleted > 0)
      await recordChanges(transaction, kind, 'remember', change, [providerId], link?.internalId);
    return { isCancelled, isDeleted: deleted > 0 };
  }, TRANSACTION);
}

/**
 * Result for one user or organization: that of `forget`, `failed` if it threw `error`, `restored` if the provider has this id
 * again, `moved` if a relink has replaced this id with another, or `postponed` if the deletion was cancelled or is due later. These
 * three do not delete the row. `renewed` replaces `relinked` if the deletion is not pending again (`finishDeletions`).
 */
export interface ForgetDueStep extends DueDeletion {
  readonly result: ForgetResult | 'renewed' | 'restored' | 'moved' | 'postponed' | 'failed';
  readonly error?: unknown;
  /** The provider that has the id. */
  readonly holder?: string | undefined;
}

/** Number of ids that are forgotten at the same time, so that their pauses overlap. Each needs a database connection. */
const BATCH_SIZE = 20;

/**
 * Forgets all users or organizations whose deletion is due (lib/operator/pending-deletions.ts) for `days` days, completes the
 * deletions that an earlier run has left unfinished, and yields a result for each. The transaction that deletes a row also ends
 * its pending deletion. `restored` ends it when the caller requests the next result. A later run repeats or completes all others.
 *
 * An error of `forget` does not end the run. Throws if the requests to the provider or the statements of this function still
 * fail after the retries. Deletes nothing before the provider has confirmed that it does not have the id.
 */
export async function* forgetDue(
  kind: Kind,
  days: number,
  change: Change,
  retryOptions: RetryOptions,
  pause?: () => Promise<unknown>,
  others: readonly Provider[] = [],
): AsyncGenerator<ForgetDueStep> {
  const due = await retry(retryOptions, () => dueDeletions(kind));
  for (let at = 0; at < due.length; at += BATCH_SIZE) {
    const batch = due.slice(at, at + BATCH_SIZE);
    const ids = batch.map(({ providerId }) => providerId);
    const existing = await holdersOf(kind, ids, others, retryOptions);
    const complete = async (deleted: readonly string[]): Promise<ForgetDueStep['result']> => {
      const result = await completeDeletion(kind, deleted, pause);
      return result === 'relinked' && !(await deletionDueAt(kind, deleted)) ? 'renewed' : result;
    };
    const runOne = async ({ providerId, unfinished }: DueDeletion): Promise<ForgetDueStep['result']> => {
      if (unfinished) return complete(unfinished);
      if (existing.has(providerId)) return 'restored';
      await uncacheAll(kind, providerId);
      const deletion = await deleteIfDue(kind, providerId, days, change);
      return typeof deletion === 'string' ? deletion : complete(deletion);
    };
    const steps = batch.map((each) =>
      runOne(each).then(
        (result): ForgetDueStep => ({ ...each, result, holder: existing.get(each.providerId) }),
        (error: unknown): ForgetDueStep => ({ ...each, result: 'failed', error }),
      ),
    );
    for (const step of await Promise.all(steps)) {
      yield step;
      // If a new event has postponed the deletion in the meantime, it stays pending.
      if (step.result === 'restored')
        await retry(retryOptions, () => cancelDeletion(kind, [step.providerId], true));
    }
  }
}

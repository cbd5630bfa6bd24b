import { type RetryOptions, retry } from '../base/retry';
import type { Kind } from '../core/ports';
import type { Provider } from '../providers';
import { deleteIfDue } from './delete-link';
import { completeDeletion, type ForgetResult, uncacheAll } from './forget';
import type { Change } from './history';
import { holdersOf } from './paginate';
import { cancelDeletion, type DueDeletion, deletionDueAt, dueDeletions } from './pending-deletions';

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

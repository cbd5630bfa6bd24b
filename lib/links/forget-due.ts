import { type RetryOptions, retry } from '../base/retry';
import { listById } from '../idp/backend-api';
import type { Kind } from '../linking/kinds';
import { type ForgetResult, forget } from './forget';
import { cancelDeletion, type DueDeletion, dueDeletions } from './pending-deletions';

/**
 * Result for one user or organization: that of `forget`, `failed` if it threw `error`, `restored` if the provider has this id again,
 * or `moved` if a relink has replaced this id with another. The last two do not delete the row.
 */
export interface ForgetDueStep extends DueDeletion {
  readonly result: ForgetResult | 'restored' | 'moved' | 'failed';
  readonly error?: unknown;
}

/** Number of ids that are forgotten at the same time, so that their pauses overlap. Each needs a database connection. */
const BATCH_SIZE = 20;

/** Results after which the deletion is no longer pending. */
const ENDS: ReadonlySet<string> = new Set(['forgotten', 'restored', 'moved']);

/**
 * Forgets all users or organizations whose deletion is due (lib/links/pending-deletions.ts) for `days` days, and yields a result for each.
 * `forgotten`, `restored` and `moved` end the pending deletion when the caller requests the next result. All other results, and
 * an interruption, leave the deletion pending, so that a later run repeats it.
 *
 * An error of `forget` does not end the run. Throws if the requests to the provider or the statements of this function still
 * fail after the retries. Deletes nothing before the provider has confirmed that it does not have the id.
 */
export async function* forgetDue(
  kind: Kind,
  days: number,
  retryOptions: RetryOptions,
  pause?: () => Promise<unknown>,
): AsyncGenerator<ForgetDueStep> {
  const due = await retry(retryOptions, () => dueDeletions(kind));
  for (let at = 0; at < due.length; at += BATCH_SIZE) {
    const batch = due.slice(at, at + BATCH_SIZE);
    const ids = batch.map(({ providerId }) => providerId);
    const existing = new Set((await retry(retryOptions, () => listById(kind, ids))).map(({ id }) => id));
    const runOne = async (each: DueDeletion): Promise<ForgetDueStep> => {
      if (existing.has(each.providerId)) return { ...each, result: 'restored' };
      // `forget` would find the row by this previous id and delete it.
      if (each.isPrevious) return { ...each, result: 'moved' };
      return forget(kind, each.providerId, days, pause).then(
        (result) => ({ ...each, result }),
        (error: unknown) => ({ ...each, result: 'failed', error }),
      );
    };
    for (const step of await Promise.all(batch.map(runOne))) {
      yield step;
      // If a new event has postponed the deletion in the meantime, it stays pending.
      if (ENDS.has(step.result))
        await retry(retryOptions, () => cancelDeletion(kind, [step.providerId], true));
    }
  }
}

import { type RetryOptions, retry } from '../base/retry';
import { listUsersById } from '../idp/backend-api';
import { type ForgetResult, forget } from './forget';
import { cancelDeletion, type DueDeletion, dueDeletions } from './pending-deletions';

/**
 * Result for one user: that of `forget`, `failed` if it threw `error`, `restored` if the provider has a user with this id again,
 * or `moved` if a relink has moved the user to another id at the provider. The last two do not delete the user.
 */
export interface ForgetDueStep extends DueDeletion {
  readonly result: ForgetResult | 'restored' | 'moved' | 'failed';
  readonly error?: unknown;
}

/** Number of users that are forgotten at the same time, so that their pauses overlap. Each needs a database connection. */
const BATCH_SIZE = 20;

/** Results after which the deletion is no longer pending. */
const ENDS: ReadonlySet<string> = new Set(['forgotten', 'restored', 'moved']);

/**
 * Forgets all users whose deletion is due (lib/users/pending-deletions.ts) for `days` days, and yields a result for each.
 * `forgotten`, `restored` and `moved` end the pending deletion when the caller requests the next result. All other results, and
 * an interruption, leave the deletion pending, so that a later run repeats it.
 *
 * An error of `forget` does not end the run. Throws if the requests to the provider or the statements of this function still
 * fail after the retries. Deletes no user before the provider has confirmed that it does not have this user.
 */
export async function* forgetDue(
  days: number,
  retryOptions: RetryOptions,
  pause?: () => Promise<unknown>,
): AsyncGenerator<ForgetDueStep> {
  const due = await retry(retryOptions, dueDeletions);
  for (let at = 0; at < due.length; at += BATCH_SIZE) {
    const batch = due.slice(at, at + BATCH_SIZE);
    const ids = batch.map(({ identityProviderUserId }) => identityProviderUserId);
    const existing = new Set((await retry(retryOptions, () => listUsersById(ids))).map(({ id }) => id));
    const runOne = async (each: DueDeletion): Promise<ForgetDueStep> => {
      if (existing.has(each.identityProviderUserId)) return { ...each, result: 'restored' };
      // `forget` would find the user by this previous id and delete the user.
      if (each.isPrevious) return { ...each, result: 'moved' };
      return forget(each.identityProviderUserId, days, pause).then(
        (result) => ({ ...each, result }),
        (error: unknown) => ({ ...each, result: 'failed', error }),
      );
    };
    for (const step of await Promise.all(batch.map(runOne))) {
      yield step;
      // If a new event has postponed the deletion in the meantime, it stays pending.
      if (ENDS.has(step.result))
        await retry(retryOptions, () => cancelDeletion([step.identityProviderUserId], true));
    }
  }
}

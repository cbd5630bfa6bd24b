import { type RetryOptions, retry } from '../concurrency/retry';
import { listUsersById } from '../idp/backend-api';
import { type ForgetResult, forget } from './forget';
import { completeDeletion, type DueDeletion, dueDeletions } from './pending-deletions';

/**
 * Result for a user, in addition to the results of `forget`, which deletes the link of the user:
 * - `restored`: the provider has a user with this id again, so `forget` was not called.
 * - `moved`: an operator has moved the user to another id at the provider (`users:relink`), so `forget` was not called.
 * - `failed`: `forget` threw `error`.
 */
type DueResult =
  | { readonly result: ForgetResult | 'restored' | 'moved' }
  | { readonly result: 'failed'; readonly error: unknown };

/** Result for one user. */
export type ForgetDueStep = DueDeletion & DueResult;

/**
 * Number of users that are forgotten at the same time. For each user, `forget` pauses until no request can cache the deleted
 * id any more. These pauses overlap. One request to the provider checks all these users. The number is limited because each
 * user also needs a database connection (`MAX_CONNECTIONS` in lib/storage/database.ts).
 */
const BATCH_SIZE = 20;

/** Results after which the deletion is no longer pending. */
const ENDS: ReadonlySet<DueResult['result']> = new Set(['forgotten', 'restored', 'moved']);

/**
 * Forgets all users whose deletion is due, and yields a result for each. The handler of a webhook event schedules a deletion.
 * The deletion is due after a number of hours, and pending until it is completed or cancelled (lib/users/pending-deletions.ts).
 * Forgetting a user deletes the link. For `days` days, late events then cannot link the user again.
 * `forgotten`, `restored` and `moved` end the pending deletion, but only when the caller requests the next result. All other
 * results, and an interruption, leave the deletion pending, so that a later run repeats the steps. Two concurrent runs can
 * yield the same user.
 *
 * An error of `forget` does not end the run. `forgetDue` retries its own requests to the provider and the database according to
 * `retryOptions`. If such a request still fails, `forgetDue` throws the error. No user is deleted before the provider has
 * confirmed that it does not have this user.
 */
export async function* forgetDue(
  days: number,
  retryOptions: RetryOptions,
  pause?: () => Promise<unknown>,
): AsyncGenerator<ForgetDueStep> {
  for (let last = ''; ; ) {
    const batch = await retry(retryOptions, () => dueDeletions(last, BATCH_SIZE));
    const ids = batch.map(({ identityProviderUserId }) => identityProviderUserId);
    const existing = new Set((await retry(retryOptions, () => listUsersById(ids))).map(({ id }) => id));
    const resultOf = async ({ identityProviderUserId, isPrevious }: DueDeletion): Promise<DueResult> => {
      if (existing.has(identityProviderUserId)) return { result: 'restored' };
      // The user has moved to another id. `forget` would find the user by this previous id and delete the user.
      if (isPrevious) return { result: 'moved' };
      return forget(identityProviderUserId, days, pause).then(
        (result) => ({ result }),
        (error: unknown) => ({ result: 'failed', error }),
      );
    };
    const steps = await Promise.all(batch.map(async (due) => ({ ...due, ...(await resultOf(due)) })));
    for (const step of steps) {
      yield step;
      if (ENDS.has(step.result))
        await retry(retryOptions, () => completeDeletion(step.identityProviderUserId));
      last = step.identityProviderUserId;
    }
    if (ids.length < BATCH_SIZE) return;
  }
}

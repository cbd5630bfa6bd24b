import { type RetryOptions, retry } from '../concurrency/retry';
import { listUsersById } from '../idp/backend-api';
import { type ForgetResult, forget } from './forget';
import { completeDeletion, type DueDeletion, dueDeletions } from './pending-deletions';

/**
 * `restored`: the provider has the user again, so the user was not deleted. `moved`: the id is a previous id of a user, so the
 * user with the present id was not deleted. `failed`: `error` is the error of `forget`.
 */
type DueResult =
  | { readonly result: ForgetResult | 'restored' | 'moved' }
  | { readonly result: 'failed'; readonly error: unknown };

/** Result for one user. */
export type ForgetDueStep = DueDeletion & DueResult;

/**
 * Maximum number of users that are forgotten at the same time, so that their pauses overlap. Each needs a database connection
 * (`MAX_CONNECTIONS` in lib/storage/database.ts) and one of the ids of a request to the provider.
 */
const BATCH_SIZE = 20;

/** Results after which the deletion is no longer pending. */
const ENDS: ReadonlySet<DueResult['result']> = new Set(['forgotten', 'restored', 'moved']);

/**
 * Forgets all users whose deletion is due, and yields a result for each. `forgotten`, `restored` and `moved` end the pending
 * deletion, but only when the caller requests the next result. All other results leave it pending, so that a later run repeats
 * the steps. The same applies to a run that is interrupted. Two runs at the same time can yield the same user.
 *
 * Throws if the provider or the database rejects a request, or fails for longer than `retryOptions.seconds`. No user is deleted
 * before the provider has confirmed that it does not have this user.
 */
export async function* forgetDue(
  days: number,
  retryOptions: RetryOptions,
  lookupsEnd?: () => Promise<unknown>,
): AsyncGenerator<ForgetDueStep> {
  for (let last = ''; ; ) {
    const batch = await retry(retryOptions, () => dueDeletions(last, BATCH_SIZE));
    const ids = batch.map(({ identityProviderUserId }) => identityProviderUserId);
    const existing = new Set((await retry(retryOptions, () => listUsersById(ids))).map(({ id }) => id));
    const resultOf = async ({ identityProviderUserId, isPrevious }: DueDeletion): Promise<DueResult> => {
      if (existing.has(identityProviderUserId)) return { result: 'restored' };
      // `forget` deletes a user by each of its ids.
      if (isPrevious) return { result: 'moved' };
      return forget(identityProviderUserId, days, lookupsEnd).then(
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

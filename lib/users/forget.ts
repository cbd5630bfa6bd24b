import { setTimeout as sleep } from 'node:timers/promises';
import { linkedUserIds } from '../linking/links';
import { deleteCachedUserId } from '../linking/user-id-cache';
import { asTransientError } from './database-error';
import { deleteLink } from './rows';

/**
 * `refused`: another table still refers to the row. `back`: a request with a live session has linked the user anew.
 * `uncertain`: the row is gone, but the cache does not say that its entry is.
 */
export type Forgotten = 'forgotten' | 'refused' | 'back' | 'uncertain';

/**
 * Time after which no lookup that read the row still stores it in the cache. A lookup stores what its last statement
 * returned: at most 3 s for that statement (`QUERY_TIMEOUT_MS` in lib/storage/database.ts) and 500 ms for the cache (contract 8.3). The
 * rest is for a busy machine.
 */
const LOOK_UPS_END_MS = 9_000;

async function isUncached(identityProviderUserId: string): Promise<boolean> {
  // The bound of a call is short, and a busy machine misses it.
  for (let attempt = 1; attempt <= 4; attempt += 1) {
    try {
      await deleteCachedUserId(identityProviderUserId);
      return true;
    } catch {
      await sleep(attempt * 100);
    }
  }
  return false;
}

/**
 * Deletes the link of a user, if there is one, and what refers to it as its foreign key says. When it resolves to `forgotten`, there is no row, and no
 * cached id without a row, nor will there be one.
 *
 * Cache, row, cache, and after a pause the cache again. Why that is enough:
 * - The first deletion is for a user who makes no requests any more: there is no moment with a cached id and no row.
 * - Requests that come nevertheless read the row before it is deleted, or after.
 * - Who read it before stores the old id, at the latest when the pause is over, for a look-up has a deadline. The last deletion
 *   takes it away. Until then, and only for this user, an id without a row may be handed out.
 * - Who reads after finds no row and links the user anew: `back`. What that one stores has a row; the last deletion costs it
 *   a look-up.
 *
 * A process that is frozen between its look-up and its store, for longer than the pause, could still store the old id once it
 * goes on: for as long as an entry lives. Nobody is in a look-up when the provider has deleted the user and the tokens have run
 * out, which is why that comes first.
 *
 * Throws, with nothing deleted, where the cache does not answer or the database fails.
 */
export async function forget(
  identityProviderUserId: string,
  userId: string | undefined,
  lookUpsEnd: () => Promise<unknown> = () => sleep(LOOK_UPS_END_MS),
): Promise<Forgotten> {
  if (!(await isUncached(identityProviderUserId)))
    throw new Error('The cache does not answer: nothing is deleted');
  if (userId !== undefined && (await deleteLink({ userId, identityProviderUserId })) === 'refused')
    return 'refused';
  await isUncached(identityProviderUserId);
  await lookUpsEnd();
  if (!(await isUncached(identityProviderUserId))) return 'uncertain';
  const linked = await asTransientError(linkedUserIds([identityProviderUserId]));
  return linked.size === 0 ? 'forgotten' : 'back';
}

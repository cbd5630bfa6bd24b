import { setTimeout as sleep } from 'node:timers/promises';
import { retry, TransientError } from '../concurrency/retry';
import { linkedUserIds } from '../linking/links';
import { deleteCachedUserId } from '../user-id';
import { asTransientError } from './database-error';
import { deleteLink } from './rows';

/**
 * `referenced`: another table refers to the row, so it is not deleted. `relinked`: a request with a valid session has linked
 * the user again. `uncertain`: the row is deleted, but the store has not confirmed that the cache entry is.
 */
export type ForgetResult = 'forgotten' | 'referenced' | 'relinked' | 'uncertain';

/**
 * Time after which no lookup that read the row still stores it in the cache. A lookup stores what its last statement
 * returned: at most 3 s for that statement (`QUERY_TIMEOUT_MS` in lib/storage/database.ts) and 500 ms for the cache
 * (contract 8.3). The rest is for a busy machine.
 */
const LOOKUPS_END_MS = 9_000;

/** A single call has a short timeout, which a busy machine exceeds. */
const CACHE_RETRY = { seconds: 3 };

/** Deletes the cache entry. Returns false if the store does not confirm the deletion. */
function tryUncache(identityProviderUserId: string): Promise<boolean> {
  const uncache = () =>
    deleteCachedUserId(identityProviderUserId).catch(() => {
      throw new TransientError('The cache does not respond');
    });
  return retry(CACHE_RETRY, uncache).then(
    () => true,
    () => false,
  );
}

/**
 * Deletes the link of a user and the rows that refer to it by ON DELETE CASCADE. After `forgotten` there is no row, no cached
 * id without a row, and no request that could store one.
 *
 * Deletes the cache entry, the row, the entry again, and the entry once more after a pause:
 * - The first deletion covers a user without requests: there is never a cached id without a row.
 * - A request that read the row before its deletion stores the old id at the latest at the end of the pause, because a lookup
 *   has a deadline. The last deletion removes that entry. Until then, requests of this user can get an id without a row.
 * - A request that reads after the deletion links the user again, and the result is `relinked`. The entry that it stores has a
 *   row. If the last deletion removes that entry, the next request reads the row.
 *
 * One case remains: a process that is suspended between its lookup and its write for longer than the pause can store the old id
 * for the lifetime of an entry. There is no such lookup if the user was deleted at the provider and the tokens have expired.
 * The command therefore asks for that first.
 *
 * Rejects if the cache does not respond to the first deletion or if the database fails. The row then still exists, unless the
 * last statement failed, which only checks whether the user is linked again.
 */
export async function forget(
  identityProviderUserId: string,
  userId: string | undefined,
  lookupsEnd: () => Promise<unknown> = () => sleep(LOOKUPS_END_MS),
): Promise<ForgetResult> {
  if (!(await tryUncache(identityProviderUserId)))
    throw new Error('The cache does not respond. Nothing was deleted.');
  if (userId !== undefined && (await deleteLink({ userId, identityProviderUserId })) === 'referenced')
    return 'referenced';
  await tryUncache(identityProviderUserId);
  await lookupsEnd();
  if (!(await tryUncache(identityProviderUserId))) return 'uncertain';
  const linked = await asTransientError(linkedUserIds([identityProviderUserId]));
  return linked.size === 0 ? 'forgotten' : 'relinked';
}

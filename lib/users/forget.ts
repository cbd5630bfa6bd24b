import { setTimeout as sleep } from 'node:timers/promises';
import { retry } from '../concurrency/retry';
import { linkedUserIds } from '../linking/links';
import { database } from '../storage/database';
import { asTransientError } from './database-error';
import { allIdsOf, deleteLink, findLinks } from './rows';
import { uncache } from './uncache';

/**
 * Result of `forget`:
 * - `forgotten`: the user is deleted.
 * - `referenced`: a foreign key without ON DELETE CASCADE or SET NULL refers to the row of the user, so the row is not deleted.
 * - `relinked`: the row is deleted, but a registration (an insert of a link) has linked the user again. The comment of `forget`
 *   lists the causes.
 * - `uncertain`: the row is deleted, but the cache has not confirmed the deletion of its entry.
 */
export type ForgetResult = 'forgotten' | 'referenced' | 'relinked' | 'uncertain';

/**
 * Length of the pause after the deletion of a user's row. During the pause, a request that has read the row can still cache the
 * internal id of the row. Such a request takes at most 3 s for its statement (`QUERY_TIMEOUT_MS` in lib/storage/database.ts)
 * and 500 ms for the cache (lib/storage/kv.ts). The remaining time allows for a busy machine. In a suspended process, a request
 * can take longer than the pause. The comment of `forget` describes the resulting race.
 */
const LOOKUPS_END_MS = 9_000;

/** Limit for the retries of a cache call. On a busy machine, a single call may exceed its timeout of 500 ms. */
const CACHE_RETRY = { seconds: 3 };

/** Deletes the cache entries, with retries. Returns false if the store does not confirm the deletion. */
const tryUncache = (identityProviderUserIds: readonly string[]): Promise<boolean> =>
  retry(CACHE_RETRY, () => uncache(identityProviderUserIds)).then(
    () => true,
    () => false,
  );

/**
 * Deletes the link of a user and the rows that refer to it by ON DELETE CASCADE. If the result is `forgotten`, there is no row
 * and no cached id, and no request can still cache the internal id of the deleted row (the old id), except in the race below.
 * For `days` days, only a session token that was issued after the deletion links the user again (lib/linking/forgotten.ts).
 * This applies to the present and to each previous id of the user at the identity provider (lib/users/relink.ts).
 *
 * Deletes the cache entries, the row, the entries again, and the entries once more after a pause:
 * - The first deletion removes the entries before the row. For a user without requests, there is therefore never a cached id
 *   without a row.
 * - A request that read the row before the deletion can cache the old id, but not after the pause, because a lookup has a
 *   deadline. The last deletion removes that entry. Until then, requests of this user can get an id without a row.
 * - If a request links the user again, the cache entry contains the id of the new row. If the last deletion removes that entry,
 *   the next request reads the new row.
 *
 * One race remains. A process that is suspended between its lookup and its write for longer than the pause can cache the old id
 * for the lifetime of an entry. This entry has no effect if the user was deleted at the provider and the tokens have expired,
 * because no request of the user then passes the session check. The command `users:forget` therefore asks the operator to wait
 * until the tokens have expired.
 *
 * Rejects if the cache does not respond to the first deletion or if the database fails. The row then still exists, unless only
 * the last statement failed. That statement checks whether the user is linked again.
 *
 * The result is `relinked` if one of these registrations links the user again:
 * - A registration with a session token that was issued after the deletion, or any registration if `days` is 0.
 * - A registration that starts during the deletion, if the default isolation level of the database is REPEATABLE READ. The
 *   registration waits until the deletion is committed. Its snapshot is older than the deletion, so it does not see that the
 *   user is forgotten.
 */
export async function forget(
  identityProviderUserId: string,
  days: number,
  pause: () => Promise<unknown> = () => sleep(LOOKUPS_END_MS),
): Promise<ForgetResult> {
  const links = await findLinks(identityProviderUserId);
  if (!(await tryUncache([identityProviderUserId, ...links.flatMap(allIdsOf)])))
    throw new Error('The cache does not respond. Nothing was deleted.');
  const ids = await deleteLink(identityProviderUserId, days);
  if (ids === 'referenced') return ids;
  await tryUncache(ids);
  await pause();
  if (!(await tryUncache(ids))) return 'uncertain';
  const linked = await asTransientError(linkedUserIds(ids));
  return linked.size === 0 ? 'forgotten' : 'relinked';
}

/**
 * Deletes the row of a forgotten user from the table `forgotten_users`, so that any registration links the user. Returns false
 * if there is no such row or if it has expired.
 */
export async function remember(identityProviderUserId: string): Promise<boolean> {
  const deleting = database().$executeRaw`
    DELETE FROM public.forgotten_users
    WHERE id_hash = public.forgotten_user_hash(${identityProviderUserId}) AND expires_at > now()`;
  return (await asTransientError(deleting)) === 1;
}

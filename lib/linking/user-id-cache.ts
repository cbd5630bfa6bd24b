import { InternalUserId } from '../api/schemas';
import { environment } from '../env';
import { withKv } from '../storage/kv';

const cacheKey = (identityProviderUserId: string) => `auth:user-id-by-idp:${identityProviderUserId}`;

/** How the store says that our key holds a list, a set or the like: it answers, so that is no fault. */
const WRONG_TYPE = /^(?:Command failed: )?WRONGTYPE /;

/** What the cache said. `fault`: it did not answer within its bound, or not sensibly, and is best left alone. */
export type CacheAnswer =
  | { readonly outcome: 'hit'; readonly userId: string }
  | { readonly outcome: 'miss' | 'fault' };

/**
 * Looks up the internal id of an identity-provider user; never throws (contract 5.2).
 *
 * A value that this service could not have stored, of whatever type, is a miss: it is overwritten next. One round
 * trip, at most 500 ms.
 */
export async function readCachedUserId(identityProviderUserId: string): Promise<CacheAnswer> {
  try {
    const value = await withKv((kv) =>
      kv.get(cacheKey(identityProviderUserId)).catch((error: unknown) => {
        if (error instanceof Error && WRONG_TYPE.test(error.message)) return undefined;
        throw error;
      }),
    );
    const userId = InternalUserId.safeParse(value);
    return userId.success ? { outcome: 'hit', userId: userId.data } : { outcome: 'miss' };
  } catch {
    return { outcome: 'fault' };
  }
}

/**
 * Deletes the cached id of an identity-provider user; throws where it cannot say that the entry is gone.
 *
 * A look-up that is under way may store it again: lib/users/forget.ts waits that out.
 */
export async function deleteCachedUserId(identityProviderUserId: string): Promise<void> {
  await withKv((kv) => kv.del(cacheKey(identityProviderUserId)));
}

/**
 * Stores the internal id for 10 minutes, or for USER_ID_CACHE_TTL_SECONDS (contract 5.2, 8.1); never throws.
 *
 * A fault loses nothing but the entry. One round trip, at most 500 ms.
 */
export async function cacheUserId(
  identityProviderUserId: string,
  userId: string,
): Promise<'stored' | 'fault'> {
  const ex = environment().USER_ID_CACHE_TTL_SECONDS;
  return withKv((kv) => kv.set(cacheKey(identityProviderUserId), userId, { ex })).then(
    () => 'stored',
    () => 'fault',
  );
}

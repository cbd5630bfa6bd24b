import { userIdCacheSeconds } from '../env';
import { withKv } from '../storage/kv';

const cacheKey = (identityProviderUserId: string) => `auth:user-id-by-idp:${identityProviderUserId}`;

/** An internal id as the service stores it. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Error of a Redis store for a key whose value is not a string. The store responded, so this is a miss, not a failure. */
const WRONG_TYPE = /^(?:Command failed: )?WRONGTYPE /;

/** Result of a cache read. After an `error`, a request should not wait for the cache again (up to 500 ms). */
export type CacheResult =
  | { readonly outcome: 'hit'; readonly userId: string }
  | { readonly outcome: 'miss' | 'error' };

/**
 * Reads the internal id of an identity-provider user from the cache. Never rejects (docs/contract.md, 5.2).
 *
 * A value that this service could not have stored is a miss, and the next write replaces it. A call takes one round trip and at
 * most 500 ms.
 */
export async function readCachedUserId(identityProviderUserId: string): Promise<CacheResult> {
  try {
    const value = await withKv((kv) =>
      kv.get(cacheKey(identityProviderUserId)).catch((error: unknown) => {
        if (error instanceof Error && WRONG_TYPE.test(error.message)) return undefined;
        throw error;
      }),
    );
    return typeof value === 'string' && UUID.test(value)
      ? { outcome: 'hit', userId: value }
      : { outcome: 'miss' };
  } catch {
    return { outcome: 'error' };
  }
}

/**
 * Deletes the cached ids of identity-provider users. Rejects if the store does not confirm the deletion.
 *
 * A lookup in flight can store an id again. To delete such an id, call the function again after the lookup has ended.
 */
export async function deleteCachedUserIds(identityProviderUserIds: readonly string[]): Promise<void> {
  await withKv((kv) => kv.del(...identityProviderUserIds.map(cacheKey)));
}

/** Stores an internal id for the configured time (10 minutes). Never rejects. After an `error`, the entry may be missing. */
export async function cacheUserId(
  identityProviderUserId: string,
  userId: string,
): Promise<'stored' | 'error'> {
  const ex = userIdCacheSeconds();
  return withKv((kv) => kv.set(cacheKey(identityProviderUserId), userId, { ex })).then(
    () => 'stored',
    () => 'error',
  );
}

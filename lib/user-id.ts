import { InternalUserId } from './api/schemas';
import { singleFlight } from './concurrency/single-flight';
import { environment } from './env';
import { addLogFields } from './log';
import { type Registration, registerByIdentityProviderUserId } from './register';
import { withKv } from './storage/kv';
import { withSpan } from './telemetry/with-span';

const cacheKey = (identityProviderUserId: string) => `auth:user-id-by-idp:${identityProviderUserId}`;

/**
 * Error of the store if the key holds another type, such as a list. The store responded, so this is a miss, not a failure.
 */
const WRONG_TYPE = /^(?:Command failed: )?WRONGTYPE /;

/** Result of a cache read. After an `error`, the caller should not use the cache again for this request. */
export type CacheResult =
  | { readonly outcome: 'hit'; readonly userId: string }
  | { readonly outcome: 'miss' | 'error' };

/**
 * Reads the internal id of an identity-provider user. Never rejects (contract 5.2).
 *
 * A value that this service cannot have stored is a miss, and the next write replaces it. Takes one round trip and at most
 * 500 ms.
 */
export async function readCachedUserId(identityProviderUserId: string): Promise<CacheResult> {
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
    return { outcome: 'error' };
  }
}

/**
 * Deletes the cached id of an identity-provider user. Rejects if the store does not confirm the deletion.
 *
 * A lookup in flight can store the id again. lib/users/forget.ts waits until no such lookup is left.
 */
export async function deleteCachedUserId(identityProviderUserId: string): Promise<void> {
  await withKv((kv) => kv.del(cacheKey(identityProviderUserId)));
}

/**
 * Stores the internal id for 10 minutes, or for USER_ID_CACHE_TTL_SECONDS (contract 5.2, 8.1). Never rejects.
 *
 * Takes one round trip and at most 500 ms. After an error, the entry may be missing.
 */
export async function cacheUserId(
  identityProviderUserId: string,
  userId: string,
): Promise<'stored' | 'error'> {
  const ex = environment().USER_ID_CACHE_TTL_SECONDS;
  return withKv((kv) => kv.set(cacheKey(identityProviderUserId), userId, { ex })).then(
    () => 'stored',
    () => 'error',
  );
}

const sharedRead = singleFlight((identityProviderUserId) =>
  withSpan(
    'cache read',
    () => readCachedUserId(identityProviderUserId),
    ({ outcome }) => outcome,
  ),
);

async function registerAndCache(
  _key: string,
  identityProviderUserId: string,
  issuedAt: number | undefined,
  { outcome }: CacheResult,
): Promise<Registration | undefined> {
  const registration = await registerByIdentityProviderUserId(identityProviderUserId, issuedAt);
  // Writing to a cache that has just failed would make this request wait a second time.
  if (registration === undefined || outcome === 'error') return registration;
  await withSpan(
    'cache write',
    () => cacheUserId(identityProviderUserId, registration.userId),
    (result) => result,
  );
  return registration;
}

const sharedRegisterAndCache = singleFlight(registerAndCache);

/**
 * Returns the internal id of an identity-provider user from the cache, or from a registration, which creates the link on
 * first sight (contract 5.2, rule 3). Returns undefined for a forgotten user whose session token is from before the deletion.
 * `issuedAt` returns the time of the token. It is called on a miss only. Concurrent calls for a user in one process share a
 * lookup, and calls with the same token time share a registration. Passes database errors through. A cache error is never
 * passed on.
 */
export async function resolveUserId(
  identityProviderUserId: string,
  issuedAt: () => number | undefined,
): Promise<string | undefined> {
  const { result: cached } = await sharedRead(identityProviderUserId);
  if (cached.outcome === 'hit') {
    addLogFields({ cache: 'hit' });
    return cached.userId;
  }
  const time = issuedAt();
  const key = `${time ?? ''} ${identityProviderUserId}`;
  const { result, isLeader } = await sharedRegisterAndCache(key, identityProviderUserId, time, cached);
  if (result === undefined) return undefined;
  // If several requests share a registration, only one of them is logged as the one that created the user.
  addLogFields({
    cache: cached.outcome === 'error' ? 'bypass' : 'miss',
    caller: result.created && isLeader ? 'created' : 'existing',
  });
  return result.userId;
}

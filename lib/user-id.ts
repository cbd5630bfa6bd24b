import { InternalUserId } from './api/schemas';
import { singleFlight } from './concurrency/single-flight';
import { environment } from './env';
import { addLogFields, type RequestLogFields } from './log';
import { registerByIdentityProviderUserId } from './register';
import { withKv } from './storage/kv';
import { withSpan } from './telemetry/with-span';

const cacheKey = (identityProviderUserId: string) => `auth:user-id-by-idp:${identityProviderUserId}`;

/** Error of a Redis store if the value of the key is not a string. The store responded, so this is a miss, not a failure. */
const WRONG_TYPE = /^(?:Command failed: )?WRONGTYPE /;

/** Result of a cache read. After an `error`, the caller should not use the cache again for the same request. */
export type CacheResult =
  | { readonly outcome: 'hit'; readonly userId: string }
  | { readonly outcome: 'miss' | 'error' };

/**
 * Reads the internal id of an identity-provider user from the cache. Never rejects (docs/contract.md, 5.2).
 *
 * A value that is not a string or not an internal id is a miss, and the next write replaces the value. A call takes one round
 * trip and at most 500 ms.
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
 * Deletes the cached ids of identity-provider users. Rejects if the store does not confirm the deletion.
 *
 * A lookup in flight can store an id again. lib/users/forget.ts waits for the end of such lookups.
 */
export async function deleteCachedUserIds(identityProviderUserIds: readonly string[]): Promise<void> {
  await withKv((kv) => kv.del(...identityProviderUserIds.map(cacheKey)));
}

/**
 * Stores the internal id for USER_ID_CACHE_TTL_SECONDS, by default 10 minutes. Never rejects.
 *
 * A call takes one round trip and at most 500 ms. If the result is `error`, the entry may be missing.
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

interface ResolvedUserId {
  readonly userId: string;
  readonly logFields: Pick<RequestLogFields, 'cache' | 'caller'>;
}

async function readOrRegister(
  identityProviderUserId: string,
  issuedAt: () => number | undefined,
): Promise<ResolvedUserId | undefined> {
  const cached = await withSpan(
    'cache read',
    () => readCachedUserId(identityProviderUserId),
    ({ outcome }) => outcome,
  );
  if (cached.outcome === 'hit') return { userId: cached.userId, logFields: { cache: 'hit' } };
  const registration = await registerByIdentityProviderUserId(identityProviderUserId, issuedAt());
  if (registration === undefined) return undefined;
  const { userId, created } = registration;
  const caller = created ? 'created' : 'existing';
  // Writing to a cache that has just failed would make this request wait a second time.
  if (cached.outcome === 'error') return { userId, logFields: { cache: 'bypass', caller } };
  await withSpan(
    'cache write',
    () => cacheUserId(identityProviderUserId, userId),
    (outcome) => outcome,
  );
  return { userId, logFields: { cache: 'miss', caller } };
}

const sharedReadOrRegister = singleFlight(readOrRegister);

/**
 * Returns the internal id of an identity-provider user from the cache or from a registration. The registration links a user
 * that is not linked yet (docs/contract.md, 5.2, rule 3). Returns undefined if an operator has deleted the user ("forgotten")
 * and the session token was issued before the deletion. `issuedAt` returns the time at which the token was issued. Concurrent
 * calls for a user in one process share the result or the error. Passes database errors through, but not cache errors.
 */
export async function resolveUserId(
  identityProviderUserId: string,
  issuedAt: () => number | undefined,
): Promise<string | undefined> {
  const { result, isLeader } = await sharedReadOrRegister(identityProviderUserId, issuedAt);
  // The call that started the lookup may have had an older token. If its result is undefined, this call tries its own token.
  const usesOwnToken = result === undefined && !isLeader;
  const resolved = usesOwnToken ? await readOrRegister(identityProviderUserId, issuedAt) : result;
  if (resolved === undefined) return undefined;
  const { userId, logFields } = resolved;
  // If several requests share a registration that created the user, only one of them logs `created`.
  addLogFields(
    isLeader || usesOwnToken || logFields.caller === undefined
      ? logFields
      : { ...logFields, caller: 'existing' },
  );
  return userId;
}

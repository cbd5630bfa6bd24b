import { InternalUserId } from './api/schemas';
import { singleFlight } from './concurrency/single-flight';
import { environment } from './env';
import { addLogFields, type RequestLogFields } from './log';
import { registerByIdentityProviderUserId } from './register';
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
 * Deletes the cached ids of identity-provider users. Rejects if the store does not confirm the deletion.
 *
 * A lookup in flight can store an id again. lib/users/forget.ts waits until no such lookup is left.
 */
export async function deleteCachedUserIds(identityProviderUserIds: readonly string[]): Promise<void> {
  await withKv((kv) => kv.del(...identityProviderUserIds.map(cacheKey)));
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

interface ResolvedUserId {
  readonly userId: string;
  readonly facts: Pick<RequestLogFields, 'cache' | 'caller'>;
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
  if (cached.outcome === 'hit') return { userId: cached.userId, facts: { cache: 'hit' } };
  const registration = await registerByIdentityProviderUserId(identityProviderUserId, issuedAt());
  if (registration === undefined) return undefined;
  const { userId, created } = registration;
  const caller = created ? 'created' : 'existing';
  // Writing to a cache that has just failed would make this request wait a second time.
  if (cached.outcome === 'error') return { userId, facts: { cache: 'bypass', caller } };
  await withSpan(
    'cache write',
    () => cacheUserId(identityProviderUserId, userId),
    (outcome) => outcome,
  );
  return { userId, facts: { cache: 'miss', caller } };
}

const sharedReadOrRegister = singleFlight(readOrRegister);

/**
 * Returns the internal id of an identity-provider user from the cache, or from a registration, which creates the link on
 * first sight (contract 5.2, rule 3). Returns undefined for a forgotten user whose session token is from before the deletion.
 * `issuedAt` returns the time of the token. Concurrent calls for a user in one process share the result or the error. Passes
 * database errors through. A cache error is never passed on.
 */
export async function resolveUserId(
  identityProviderUserId: string,
  issuedAt: () => number | undefined,
): Promise<string | undefined> {
  const { result, isLeader } = await sharedReadOrRegister(identityProviderUserId, issuedAt);
  // The call that started the lookup may have had an older token.
  const isAlone = result === undefined && !isLeader;
  const resolved = isAlone ? await readOrRegister(identityProviderUserId, issuedAt) : result;
  if (resolved === undefined) return undefined;
  const { userId, facts } = resolved;
  // If several requests share a registration, only one of them is logged as the one that created the user.
  addLogFields(isLeader || isAlone || facts.caller === undefined ? facts : { ...facts, caller: 'existing' });
  return userId;
}

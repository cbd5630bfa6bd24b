import { singleFlight } from './concurrency/single-flight';
import { environment } from './env';
import { cacheUserId, readCachedUserId } from './linking/user-id-cache';
import { addLogFields, type RequestLogFields } from './log';
import { registerByIdentityProviderUserId } from './register';
import { withSpan } from './telemetry/with-span';

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
    () => cacheUserId(identityProviderUserId, userId, environment().USER_ID_CACHE_TTL_SECONDS),
    (outcome) => outcome,
  );
  return { userId, logFields: { cache: 'miss', caller } };
}

const sharedReadOrRegister = singleFlight(readOrRegister);

/**
 * Returns the internal id of an identity-provider user from the cache or from a registration. The registration links a user
 * that is not linked yet (docs/contract.md, 5.2, rule 3). Returns undefined if an operator has deleted the user ("forgotten")
 * and the session token was issued before the deletion. Also returns undefined for an expired previous id (lib/register.ts).
 * `issuedAt` returns the time at which the token was issued. Concurrent calls for a user in one process share a lookup. If the
 * shared lookup returns undefined, each call that did not start it runs its own lookup. Passes database errors through, but not
 * cache errors.
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

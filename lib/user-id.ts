import { singleFlight } from './concurrency/single-flight';
import { cacheId, readCachedId } from './linking/id-cache';
import { addLogFields } from './log';
import { registerByIdentityProviderUserId } from './register';

interface Resolved {
  readonly userId: string;
  readonly cache: 'hit' | 'miss' | 'bypass';
  caller?: 'created' | 'existing';
}

async function readOrRegister(
  identityProviderUserId: string,
  issuedAt: number | undefined,
): Promise<Resolved | undefined> {
  const cached = await readCachedId('user', identityProviderUserId);
  if (cached.outcome === 'hit') return { userId: cached.id, cache: 'hit' };
  const registration = await registerByIdentityProviderUserId(identityProviderUserId, issuedAt);
  if (registration === undefined) return undefined;
  const { userId, created } = registration;
  const caller = created ? 'created' : 'existing';
  // Writing to a cache that has just failed would make this request wait a second time.
  if (cached.outcome === 'error') return { userId, cache: 'bypass', caller };
  await cacheId('user', identityProviderUserId, userId);
  return { userId, cache: 'miss', caller };
}

/** Only a token from after the deletion links a forgotten user again, so only tokens of the same time share a lookup. */
const sharedReadOrRegister = singleFlight(readOrRegister, (user, issuedAt) =>
  JSON.stringify([user, issuedAt]),
);

/**
 * Returns the internal id of an identity-provider user from the cache or from a registration, which links a new user
 * (docs/contract.md, 5.2, rule 3). Returns undefined for a forgotten user and for an expired previous id. `issuedAt` is the issue
 * time of the session token. Concurrent calls with the same arguments in this process share a lookup. Passes database errors
 * through, but not cache errors.
 */
export async function resolveUserId(
  identityProviderUserId: string,
  issuedAt: number | undefined,
): Promise<string | undefined> {
  const resolved = await sharedReadOrRegister(identityProviderUserId, issuedAt);
  if (resolved === undefined) return undefined;
  const { userId, ...logFields } = resolved;
  addLogFields(logFields);
  // Only one of the requests that share a registration logs that the user is new.
  if (resolved.caller) resolved.caller = 'existing';
  return userId;
}

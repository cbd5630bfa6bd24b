import { singleFlight } from './concurrency/single-flight';
import { cacheUserId, readCachedUserId } from './linking/user-id-cache';
import { registerByIdentityProviderUserId } from './register';
import { addLogFields } from './request-log';
import { withSpan } from './telemetry/with-span';

async function readOrRegister(
  identityProviderUserId: string,
  issuedAt: number | undefined,
): Promise<string | undefined> {
  const cached = await withSpan(
    'cache read',
    () => readCachedUserId(identityProviderUserId),
    ({ outcome }) => outcome,
  );
  addLogFields({ cache: cached.outcome === 'error' ? 'bypass' : cached.outcome });
  if (cached.outcome === 'hit') return cached.userId;
  const registration = await registerByIdentityProviderUserId(identityProviderUserId, issuedAt);
  if (registration === undefined) return undefined;
  const { userId, created } = registration;
  addLogFields({ caller: created ? 'created' : 'existing' });
  // Writing to a cache that has just failed would make this request wait a second time.
  if (cached.outcome === 'miss')
    await withSpan(
      'cache write',
      () => cacheUserId(identityProviderUserId, userId),
      (outcome) => outcome,
    );
  return userId;
}

/**
 * Returns the internal id of an identity-provider user from the cache or from a registration, which links a new user
 * (docs/contract.md, 5.2, rule 3). Returns undefined for a forgotten user and for an expired previous id. Passes database
 * errors through, but not cache errors.
 *
 * A user's concurrent requests in this process share a lookup, unless their tokens were issued at different times, because only
 * a token from after the deletion links a forgotten user again.
 */
export const resolveUserId = singleFlight(readOrRegister, (user, issuedAt) =>
  JSON.stringify([user, issuedAt]),
);

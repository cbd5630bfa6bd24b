import { registerByIdentityProviderUserId } from './link';
import { cacheUserId, readCachedUserId } from './user-id-cache';

const TTL_SECONDS = 600;

/**
 * Returns the internal id of a Clerk user from the cache or the database, and links a new user. Does not throw cache errors.
 */
export async function resolveUserId(identityProviderUserId: string): Promise<string> {
  const cached = await readCachedUserId(identityProviderUserId);
  if (cached.outcome === 'hit') return cached.userId;
  const { userId } = await registerByIdentityProviderUserId(identityProviderUserId);
  // Writing to a cache that has just failed would make this request wait a second time.
  if (cached.outcome === 'miss') await cacheUserId(identityProviderUserId, userId, TTL_SECONDS);
  return userId;
}

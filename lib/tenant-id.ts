import { singleFlight } from './concurrency/single-flight';
import { type CacheResult, cacheId, readCachedId } from './linking/id-cache';
import { findOrInsertTenant } from './linking/tenants';
import { withinRegistrationTime } from './register';

const sharedRead = singleFlight(
  (organizationId: string) => readCachedId('tenant', organizationId),
  (organizationId) => organizationId,
);

const sharedFindOrInsert = singleFlight(
  async (organizationId: string, { outcome }: CacheResult) => {
    const tenantId = await withinRegistrationTime(() => findOrInsertTenant(organizationId));
    // Writing to a cache that has just failed would make this request wait a second time.
    if (outcome === 'miss') await cacheId('tenant', organizationId, tenantId);
    return tenantId;
  },
  (organizationId) => organizationId,
);

/**
 * Returns the internal id of an organization, which is its tenant, from the cache or the database. Creates the tenant of a new
 * organization. `user` is the lookup of the user who acts in the organization, and runs at the same time. If the user is
 * undefined, the result is too, and no statement runs.
 *
 * Concurrent calls for one organization in this process share a lookup. Passes database errors and those of `user` through, but
 * not cache errors.
 */
export async function resolveTenantId(
  organizationId: string,
  user: Promise<unknown>,
): Promise<string | undefined> {
  const [cached, found] = await Promise.all([sharedRead(organizationId), user]);
  if (found === undefined) return undefined;
  return cached.outcome === 'hit' ? cached.id : sharedFindOrInsert(organizationId, cached);
}

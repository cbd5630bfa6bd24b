import { type CacheResult, cacheId, readCachedId } from '#lib/ids/cache';
import { singleFlight } from '../base/single-flight';
import { type Registration, register } from '../register';
import type { Kind } from './kinds';

/** A link, and the log fields of its lookup (lib/telemetry/port.ts). */
export type Resolved =
  | {
      readonly state: 'linked';
      readonly id: string;
      readonly cache: 'hit' | 'miss' | 'bypass';
      readonly caller?: 'created' | 'existing';
    }
  | { readonly state: 'forgotten'; readonly id?: undefined; readonly caller?: undefined };

const registrations = singleFlight<Registration>();

/**
 * Returns the link of a user or an organization from the cache or from a registration, which links a new one
 * (docs/contract.md, 5.2, rule 3). `given` is the result of `readCachedId`, if the caller has read the cache. The result is
 * `forgotten` where that of `register` is. Concurrent calls in this process share a registration, if their session tokens have
 * the same issue time, because only a token from after the deletion links a forgotten user again. A call that found the id of a
 * tenant blocked, or could not read it, shares none, because one in flight can be older than the deletion. No call joins a read
 * of the cache for the same reason. Passes database errors through, but not cache errors.
 */
export async function resolveId(
  kind: Kind,
  providerId: string,
  issuedAt: number | undefined,
  given?: CacheResult,
): Promise<Resolved> {
  const cached = given ?? (await readCachedId(kind, providerId));
  if (cached.outcome === 'hit') return { state: 'linked', id: cached.id, cache: 'hit' };
  let isOwn = false;
  const registerOnce = async () => {
    isOwn = true;
    const registered = await register(kind, providerId, issuedAt);
    // Writing to a cache that has just failed would make this request wait a second time.
    if (registered.state === 'linked' && cached.outcome === 'miss')
      await cacheId(kind, providerId, registered.id, cached.entry);
    return registered;
  };
  const isShared = kind === 'user' || (cached.outcome === 'miss' && cached.entry !== 'block');
  const registration = await (isShared
    ? registrations(JSON.stringify([kind, providerId, issuedAt]), registerOnce)
    : registerOnce());
  if (registration.state === 'forgotten') return registration;
  const { id, created } = registration;
  const cache = cached.outcome === 'miss' ? 'miss' : 'bypass';
  return { state: 'linked', id, cache, caller: created && isOwn ? 'created' : 'existing' };
}

import { singleFlight } from '../base/single-flight';
import { type Registration, register } from '../register';
import { type CacheResult, cacheId, readCachedId } from './cache';
import type { Kind } from './kinds';

/** An internal id, and the log fields of its lookup (lib/telemetry/port.ts). */
export interface Resolved {
  readonly id: string;
  readonly cache: 'hit' | 'miss' | 'bypass';
  readonly caller?: 'created' | 'existing';
}

/** Reads an internal id from the cache. No call joins a read in flight, which can be older than a deletion. Never rejects. */
export const readId = readCachedId;

const registrations = singleFlight<Registration | undefined>();

/**
 * Returns the internal id of a user or an organization from the cache or from a registration, which links a new one
 * (docs/contract.md, 5.2, rule 3). `read` is the read of the cache, if it has already begun. Returns undefined where `register`
 * does. Concurrent calls in this process share a registration, if their session tokens have the same issue time, because only a
 * token from after the deletion links a forgotten user again. A call that found the id of a tenant blocked, or could not read it,
 * shares none, because one in flight can be older than the deletion. Passes database errors through, but not cache errors.
 */
export async function resolveId(
  kind: Kind,
  providerId: string,
  issuedAt: number | undefined,
  read: Promise<CacheResult> = readId(kind, providerId),
): Promise<Resolved | undefined> {
  const cached = await read;
  if (cached.outcome === 'hit') return { id: cached.id, cache: 'hit' };
  let isOwn = false;
  const registerOnce = async () => {
    isOwn = true;
    const registered = await register(kind, providerId, issuedAt);
    // Writing to a cache that has just failed would make this request wait a second time.
    if (registered && cached.outcome === 'miss') await cacheId(kind, providerId, registered.id, cached.entry);
    return registered;
  };
  const isShared = kind === 'user' || (cached.outcome === 'miss' && cached.entry !== 'block');
  const registration = await (isShared
    ? registrations(JSON.stringify([kind, providerId, issuedAt]), registerOnce)
    : registerOnce());
  if (registration === undefined) return undefined;
  const { id, created } = registration;
  const cache = cached.outcome === 'miss' ? 'miss' : 'bypass';
  return { id, cache, caller: created && isOwn ? 'created' : 'existing' };
}

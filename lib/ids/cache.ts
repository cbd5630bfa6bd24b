import { UUID } from '../api/identifier';
import { environment } from '../base/env';
import { TransientError } from '../base/errors';
import { withKv } from '../storage/kv';
import { withSpan } from '../telemetry/current';
import type { Kind } from './kinds';

const cacheKey = (kind: Kind, providerId: string) => `auth:${kind}-id-by-idp:${providerId}`;

/** Error of a Redis store for a key whose value is not a string. The store responded, so this is a miss, not a failure. */
const WRONG_TYPE = /^(?:Command failed: )?WRONGTYPE /;

/** Value in place of an id that no lookup in flight may cache. */
const BLOCKED = '-';
/** Time after which no lookup is in flight that began before (lib/operator/forget.ts explains it). The rest allows for clocks. */
const BLOCK_SECONDS = 60;

/** Result of a cache read. After an `error`, a request should not wait for the cache again (up to 500 ms). */
export type CacheResult =
  | { readonly outcome: 'hit'; readonly id: string }
  /** `entry`: the entry blocks the id, or has a value that this service could not have stored. */
  | { readonly outcome: 'miss' | 'error'; readonly entry?: 'block' | 'invalid' | undefined };

async function read(key: string): Promise<CacheResult> {
  try {
    const value = await withKv((kv) =>
      kv.get(key).catch((error: unknown) => {
        if (error instanceof Error && WRONG_TYPE.test(error.message)) return undefined;
        throw error;
      }),
    );
    if (typeof value === 'string' && UUID.test(value)) return { outcome: 'hit', id: value };
    return { outcome: 'miss', entry: value === null ? undefined : value === BLOCKED ? 'block' : 'invalid' };
  } catch {
    return { outcome: 'error' };
  }
}

/**
 * Reads an internal id from the cache by the id at the identity provider. Never rejects (docs/contract.md, 5.2).
 *
 * A value that this service could not have stored is a miss, and the next write replaces it. A call takes at most 500 ms. The
 * calls of an event loop iteration share one round trip.
 */
export const readCachedId = (kind: Kind, providerId: string): Promise<CacheResult> =>
  withSpan(
    'cache read',
    () => read(cacheKey(kind, providerId)),
    ({ outcome }) => outcome,
  );

const block = (kind: Kind, id: string) =>
  withKv((kv) => kv.set(cacheKey(kind, id), BLOCKED, { ex: BLOCK_SECONDS }));

/**
 * Deletes the cached ids of users. A lookup of a user in flight can store an id again. To delete such an id, call the function
 * again after the lookup has ended. Blocks the ids of tenants instead, so that no lookup in flight stores one, and no call ends
 * the block of a deleted organization. Rejects with a TransientError if the store does not confirm this.
 */
export async function uncache(kind: Kind, providerIds: readonly string[]): Promise<void> {
  const uncached =
    kind === 'tenant'
      ? Promise.all(providerIds.map((id) => block(kind, id)))
      : withKv((kv) => kv.del(...providerIds.map((id) => cacheKey(kind, id))));
  await uncached.catch(() => {
    throw new TransientError('The cache does not respond');
  });
}

/**
 * Stores an internal id for the configured time (10 minutes). Replaces an invalid `entry` of a tenant with a block, because a
 * block that has replaced the entry in the meantime must stay. Never rejects. After an error, the entry may be missing.
 */
export async function cacheId(
  kind: Kind,
  providerId: string,
  id: string,
  entry: 'block' | 'invalid' | undefined,
): Promise<void> {
  const ex = environment().USER_ID_CACHE_TTL_SECONDS;
  const options = kind === 'tenant' ? { ex, nx: true as const } : { ex };
  const store = () =>
    kind === 'tenant' && entry === 'invalid'
      ? block(kind, providerId)
      : withKv((kv) => kv.set(cacheKey(kind, providerId), id, options));
  await withSpan(
    'cache write',
    () =>
      store().then(
        () => 'stored' as const,
        () => 'error' as const,
      ),
    (outcome) => outcome,
  );
}

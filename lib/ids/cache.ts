import { environment } from '../base/env';
import { TransientError } from '../base/errors';
import { withSpan } from '../base/telemetry';
import type { CacheRead, Kind } from '../core/ports';
import { RESERVED, UUID } from '../core/values';
import { withKv } from '../storage/kv';

const cacheKey = (kind: Kind, providerId: string) => `auth:${kind}-id-by-idp:${providerId}`;

/** Error of a Redis store for a key whose value is not a string. The store responded, so this is a miss, not a failure. */
const WRONG_TYPE = /^(?:Command failed: )?WRONGTYPE /;

/** Value in place of an id that no lookup in flight may cache. */
const BLOCKED = '-';
/** Time after which no lookup is in flight that began before (lib/operator/forget.ts explains it). The rest allows for clocks. */
const BLOCK_SECONDS = 60;

const block = (kind: Kind, id: string) =>
  withKv((kv) => kv.set(cacheKey(kind, id), BLOCKED, { ex: BLOCK_SECONDS }));

/**
 * Deletes the cached ids of users. A lookup in flight can store one again, so call the function again after it has ended. Blocks
 * the ids of tenants instead, so that no lookup in flight stores one. Rejects with a TransientError if the store does not confirm
 * this.
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
 * Stores an internal id for the configured time (10 minutes) in place of `replaced`. Never rejects. After an error, the entry may
 * be missing. The id of a tenant never replaces a block, which an invalid value can have become since it was read.
 */
async function put(kind: Kind, providerId: string, id: string, replaced: unknown): Promise<void> {
  const ex = environment().USER_ID_CACHE_TTL_SECONDS;
  const isInvalid = replaced !== null && replaced !== BLOCKED;
  const store = () => {
    if (kind === 'user') return withKv((kv) => kv.set(cacheKey(kind, providerId), id, { ex }));
    if (isInvalid) return block(kind, providerId);
    return withKv((kv) => kv.set(cacheKey(kind, providerId), id, { ex, nx: true }));
  };
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

async function read(kind: Kind, providerId: string): Promise<CacheRead> {
  try {
    const value = await withKv((kv) =>
      kv.get(cacheKey(kind, providerId)).catch((error: unknown) => {
        if (error instanceof Error && WRONG_TYPE.test(error.message)) return undefined;
        throw error;
      }),
    );
    if (typeof value === 'string' && UUID.test(value) && !RESERVED.test(value))
      return { outcome: 'hit', id: value };
    // A registration in flight can be older than a block.
    const isShared = kind === 'user' || value !== BLOCKED;
    return { outcome: 'miss', isShared, put: (id) => put(kind, providerId, id, value) };
  } catch {
    return { outcome: 'error', isShared: kind === 'user' };
  }
}

/**
 * Reads an internal id from the cache. Never rejects (docs/contract.md, 5.2). A value that this service could not have stored is
 * a miss. A call takes at most 500 ms. The calls of an event loop iteration share one round trip.
 */
export const readCachedId = (kind: Kind, providerId: string): Promise<CacheRead> =>
  withSpan(
    'cache read',
    () => read(kind, providerId),
    ({ outcome }) => outcome,
  );

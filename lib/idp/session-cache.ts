import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Credential, timesOf } from './extract-credential';

const MAX_ENTRIES = 5_000;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_AGE_MS = 60_000;
/** Estimated size of an entry without its `signature` and `user`. */
const ENTRY_BYTES = 300;

/** The result of verifying a session token. */
interface VerifiedSession {
  /** The middleware of Clerk's SDK computes this HMAC of the token, and the SDK's `auth()` verifies it. */
  readonly signature: string;
  readonly user: string;
}

/** A cache of verified sessions by credential. */
export interface SessionCache {
  get(credential: NonNullable<Credential>): VerifiedSession | undefined;
  /** Stores a session until its token expires, for at most 60 s. Skips cookies that contain several session tokens. */
  set(credential: NonNullable<Credential>, session: VerifiedSession): void;
}

const keyOf = ({ header, value }: NonNullable<Credential>) => hash('sha256', JSON.stringify([header, value]));

/**
 * Creates a cache of verified sessions. With a cached session, the SDK does not verify the same credential again.
 *
 * Reasons why this is safe:
 * - The SDK verifies a session token by its signature, its times and its origin (`azp`), and does not query the provider about
 *   the session. The result is the same until the token expires. Even without a cache, the token of a revoked session is
 *   accepted until the token expires (by default after 60 s).
 * - Without IDP_JWT_KEY, the SDK gets the signing keys from the provider. After the provider withdraws a key, cached tokens
 *   that were signed with that key are accepted for up to 60 s longer than without a cache.
 * - The result for an API request depends only on the credential, because the SDK gets no other header of the client. The cache
 *   key is the digest of the credential, so different credentials have different entries.
 * - Rejected credentials are not cached.
 * - An entry expires when its token expires, or after 60 s if that is earlier. Entries exist only in the memory of this
 *   process.
 * - The cache holds digests instead of tokens, so a heap dump contains only the tokens that are in use at that moment.
 * - The number and the size of the entries are limited. If a client fills the cache, other requests become as slow as they are
 *   without a cache.
 */
export function sessionCache(): SessionCache {
  const sessions = new LRUCache<string, VerifiedSession>({
    max: MAX_ENTRIES,
    maxSize: MAX_BYTES,
    sizeCalculation: ({ signature, user }) => ENTRY_BYTES + signature.length + user.length,
    ttl: MAX_AGE_MS,
    // Reads the clock for each lookup. By default, the cache reuses the time of the last reading until a timer of 1 ms fires.
    // No timer fires while the platform suspends a serverless function (the whole process). The first lookup after a suspension
    // could then use a time before the suspension, and return an expired session.
    ttlResolution: 0,
    // The expiry of a token is a wall-clock time, and a monotonic clock stops while a serverless function is suspended.
    perf: { now: () => Date.now() },
  });
  return {
    get: (credential) => sessions.get(keyOf(credential)),
    set(credential, session) {
      // If the cookies contain several tokens, the SDK chooses one of them. The expiry of that token is not known here, so the
      // session is not cached.
      if (credential.token === undefined) return;
      const ttl = Math.min(timesOf(credential.token).exp * 1000 - Date.now(), MAX_AGE_MS);
      if (ttl > 0) sessions.set(keyOf(credential), session, { ttl });
    },
  };
}

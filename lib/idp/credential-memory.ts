import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

const MAX_ENTRIES = 5_000;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_AGE_MS = 60_000;
/** What an entry takes besides its value: the key, and the places of both. */
const ENTRY_BYTES = 200;

/** What was made of a credential before, for as long as it would be made of it again. */
export interface CredentialMemory {
  recall(credential: readonly string[]): string | undefined;
  /** Keeps a value until the credential expires (milliseconds since 1970), and for 60 s at most. */
  keep(credential: readonly string[], value: string, expires: number): void;
}

const digest = (credential: readonly string[]) => hash('sha256', JSON.stringify(credential), 'base64');

/**
 * A memory of what the SDK has made of a credential, so that it need not do it again at the next request.
 *
 * Why this is safe:
 * - The SDK's verdict over a session token is arithmetic: signature, times and parties. It asks nobody, so the same token
 *   has the same verdict until it expires. A session that the provider revokes was accepted until then before, too (60 s
 *   by the provider's default). With IDP_JWT_KEY the key is the same for as long as the process lives; without it, the SDK
 *   keeps what it fetched for five minutes, and a token that it accepted by a key that is then withdrawn is accepted for
 *   the rest of its life, 60 s at most.
 * - The key is the digest of all that the verdict hangs on, and of nothing else that a caller could choose: the SDK sees
 *   nothing more of an API request than that. Two credentials that differ anywhere are two entries.
 * - Only what was accepted is kept; a refusal is judged anew each time.
 * - Nothing is recalled after the token, 60 s, or the process: a new key, or another instance, begins with an empty one.
 * - No token is in it, only digests of tokens: from a dump of the heap, no session can be taken that was not under way.
 * - It is bounded in number and in bytes. Whoever fills it makes others slower, by what was normal without it.
 */
export function credentialMemory(): CredentialMemory {
  const known = new LRUCache<string, string>({
    max: MAX_ENTRIES,
    maxSize: MAX_BYTES,
    sizeCalculation: (value) => ENTRY_BYTES + value.length,
    ttl: MAX_AGE_MS,
    ttlResolution: 0,
    // Tokens expire by the time of day; the clock that only ever runs on stands still in a function that is suspended.
    perf: { now: () => Date.now() },
  });
  return {
    recall: (credential) => known.get(digest(credential)),
    keep(credential, value, expires) {
      const ttl = Math.min(expires - Date.now(), MAX_AGE_MS);
      if (ttl >= 1) known.set(digest(credential), value, { ttl });
    },
  };
}

import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto';

const HASH_BYTES = 32;

/**
 * Returns a salted scrypt hash as `salt:hash` in base64. The function is synchronous, because no other request may run
 * between the check that an address is free and the creation of its user.
 */
export function hashPassword(password: string): string {
  const salt = randomBytes(16);
  return `${salt.toString('base64')}:${scryptSync(password, salt, HASH_BYTES).toString('base64')}`;
}

/** Returns true if the hash is that of `password`. Returns false if there is no hash. */
export function passwordMatches(password: string, hashed: string | null): boolean {
  const [salt, hash] = hashed?.split(':') ?? [];
  if (salt === undefined || hash === undefined) return false;
  return timingSafeEqual(
    scryptSync(password, Buffer.from(salt, 'base64'), HASH_BYTES),
    Buffer.from(hash, 'base64'),
  );
}

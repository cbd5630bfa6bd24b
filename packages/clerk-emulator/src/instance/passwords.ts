import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto';

const HASH_BYTES = 32;

/**
 * Returns a salted scrypt hash as `salt:hash` in base64. The function is synchronous, so that no other request runs while a
 * handler checks that an email address is free, hashes the password and creates the user.
 */
export function hashPassword(password: string): string {
  const salt = randomBytes(16);
  return `${salt.toString('base64')}:${scryptSync(password, salt, HASH_BYTES).toString('base64')}`;
}

/** Returns true if `hashed` was made from `password`. Returns false if `hashed` is null. */
export function passwordMatches(password: string, hashed: string | null): boolean {
  const [salt, hash] = hashed?.split(':') ?? [];
  if (salt === undefined || hash === undefined) return false;
  return timingSafeEqual(
    scryptSync(password, Buffer.from(salt, 'base64'), HASH_BYTES),
    Buffer.from(hash, 'base64'),
  );
}

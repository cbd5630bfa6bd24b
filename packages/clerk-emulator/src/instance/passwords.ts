import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto';

const LENGTH = 32;

/**
 * A salted scrypt hash, as `salt:hash` in base64. The work is done synchronously on purpose: between the
 * check that an address is free and the creation of its user, no other request may run.
 */
export function hashPassword(password: string): string {
  const salt = randomBytes(16);
  return `${salt.toString('base64')}:${scryptSync(password, salt, LENGTH).toString('base64')}`;
}

/** Whether `password` is the one that was hashed; false where there is none. */
export function passwordMatches(password: string, hashed: string | null): boolean {
  const [salt, hash] = hashed?.split(':') ?? [];
  if (salt === undefined || hash === undefined) return false;
  return timingSafeEqual(
    scryptSync(password, Buffer.from(salt, 'base64'), LENGTH),
    Buffer.from(hash, 'base64'),
  );
}

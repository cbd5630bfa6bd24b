import { createHash, randomBytes, scryptSync, timingSafeEqual } from 'node:crypto';
import bcrypt from 'bcryptjs';
import { ApiError } from './api-error';
import type { User, Verification } from './data';
import type { Instance } from './instance';
import { strategyInvalid } from './mail';

const HASH_BYTES = 32;

/** Hashers of `password_hasher` whose digests the emulator can verify, each with a function that verifies a password. */
const HASHERS = new Map<string, (password: string, digest: string) => boolean>([
  [
    'scrypt',
    (password, digest) => {
      const [salt = '', hash = ''] = digest.split(':');
      const bytes = scryptSync(password, Buffer.from(salt, 'base64'), HASH_BYTES);
      return timingSafeEqual(bytes, Buffer.from(hash, 'base64'));
    },
  ],
  ['bcrypt', bcrypt.compareSync],
  ['md5', (password, digest) => createHash('md5').update(password).digest('hex') === digest],
  ['sha256', (password, digest) => createHash('sha256').update(password).digest('hex') === digest],
]);

/** Returns a salted hash with the name of its algorithm, at once, so that no other request takes the address meanwhile. */
export function hashPassword(password: string): string {
  const salt = randomBytes(16);
  const hash = scryptSync(password, salt, HASH_BYTES).toString('base64');
  return importDigest('scrypt', `${salt.toString('base64')}:${hash}`);
}

/** Returns the stored form of a digest that another system has made. */
export const importDigest = (hasher: string, digest: string) => `${hasher}:${digest}`;

/** Returns true if `hashed`, unless it is null, was made from `password`. Throws a 422 for an unknown algorithm. */
export function passwordMatches(password: string, hashed: string | null): boolean {
  const [, hasher = '', digest = ''] = /^(\w+):(.*)$/s.exec(hashed ?? '') ?? [];
  if (hashed === null) return false;
  const verify = HASHERS.get(hasher);
  if (verify) return verify(password, digest);
  const known = [...HASHERS.keys()].join(', ');
  const message = `The emulator cannot verify the password hasher ${hasher}. It can verify ${known}.`;
  throw new ApiError(422, 'hasher_not_emulated', message, 'password');
}

/** Returns a completed verification if the user has the password. Throws Clerk's error otherwise. */
export function verifyPassword({ clock }: Instance, user: User, password: string): Verification {
  if (user.password === null) throw strategyInvalid();
  requirePassword(user, password, 'password');
  return { strategy: 'password', status: 'verified', code: null, attempts: 1, expireAt: clock.now() };
}

/** Throws Clerk's 422 unless the user has the password. */
export function requirePassword(user: User, password: string, parameter: string): void {
  if (passwordMatches(password, user.password)) return;
  const message = 'Password is incorrect. Try again, or use another method.';
  throw new ApiError(422, 'form_password_incorrect', message, parameter);
}

import { createHash, timingSafeEqual } from 'node:crypto';
import { ApiError } from '../http';
import type { Instance } from '../instance';

/** Throws the provider's 401 unless a request's authorization is the secret key. */
export function requireSecretKey(instance: Instance, authorization: string | undefined): void {
  if (authorization === undefined) {
    throw new ApiError(401, 'authentication_invalid', 'Invalid Authentication: no secret key was sent.');
  }
  if (!isSecretKey(instance, authorization.replace(/^Bearer /, ''))) {
    throw new ApiError(
      401,
      'clerk_key_invalid',
      'The provided Clerk Secret Key is invalid. Make sure that your Clerk Secret Key is correct.',
    );
  }
}

/** Whether a value is the instance's secret key, compared in constant time. */
export function isSecretKey(instance: Instance, value: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(value), hash(instance.secretKey));
}

import type { User, Verification } from '../instance/data';
import { ApiError } from '../instance/error';
import type { Instance } from '../instance/instance';
import { passwordMatches } from '../instance/passwords';

/**
 * Checks a user's password and returns the verification. If the password is wrong or the user has no password, throws an error
 * with the status 422 and Clerk's error code.
 */
export function verifyPassword(instance: Instance, user: User, password: string): Verification {
  if (user.password === null) {
    const message = 'The verification strategy is not valid for this account';
    throw new ApiError(422, 'strategy_for_user_invalid', message, 'strategy');
  }
  if (!passwordMatches(password, user.password)) {
    const message = 'Password is incorrect. Try again, or use another method.';
    throw new ApiError(422, 'form_password_incorrect', message, 'password');
  }
  const expireAt = instance.clock.now();
  return { strategy: 'password', status: 'verified', code: null, attempts: 1, expireAt };
}

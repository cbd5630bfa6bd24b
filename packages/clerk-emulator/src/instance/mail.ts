import { randomInt } from 'node:crypto';
import { ApiError } from './api-error';
import type { Mail, User, Verification } from './data';
import { isVerified } from './identifiers';
import { newId } from './ids';
import type { Instance } from './instance';

const CODE_LIFE = 10 * 60 * 1000;
const MAX_ATTEMPTS = 5;
const MAX_MAILS = 200;

/** Code for test addresses such as `a+clerk_test@b.c`, as in Clerk's development instances. */
const TEST_CODE = '424242';

/** A verification by a code that was not mailed yet. */
export const UNSENT: Verification = {
  strategy: 'email_code',
  status: 'unverified',
  code: null,
  attempts: 0,
  expireAt: 0,
};

/** Mails a code to an address of a user, by default the primary one. Throws a 422 if it is not a verified address of the user. */
export function mailCodeToUser(
  instance: Instance,
  user: User,
  addressId: string | undefined,
  purpose: Mail['purpose'],
  strategy: Verification['strategy'],
): Verification {
  const email = user.emails.find((each) => isVerified(each) && each.id === (addressId ?? each.id));
  if (email === undefined) throw strategyInvalid();
  return mailCode(instance, email.value, purpose, strategy);
}

/** Returns Clerk's error for a verification that the user cannot do. */
export function strategyInvalid(): ApiError {
  const message = 'The verification strategy is not valid for this account';
  return new ApiError(422, 'strategy_for_user_invalid', message, 'strategy');
}

/** Stores a mail with a new code and returns a verification that expects the code. The emulator's console shows the mail. */
export function mailCode(
  instance: Instance,
  to: string,
  purpose: Mail['purpose'],
  strategy: Verification['strategy'],
): Verification {
  const { mails } = instance.store;
  const now = instance.clock.now();
  const isTestAddress = instance.publishableKey.development && to.includes('+clerk_test@');
  const code = isTestAddress ? TEST_CODE : String(randomInt(1_000_000)).padStart(6, '0');
  mails.put({ id: newId('ema'), to, code, purpose, sentAt: now });
  const [oldest] = mails.all();
  if (oldest && mails.size() > MAX_MAILS) mails.delete(oldest.id);
  return { strategy, status: 'unverified', code, attempts: 0, expireAt: now + CODE_LIFE };
}

/**
 * Returns the verification with the status `verified` if the code is correct. If the code is wrong, passes the verification
 * with incremented `attempts` to `save` and throws. Also throws if no code was requested, if the code has expired, if the
 * verification already has the status `verified`, and after five wrong codes. All errors have Clerk's status and error code.
 */
export function checkCode(
  instance: Instance,
  verification: Verification | null,
  code: string,
  save: (verification: Verification) => void,
): Verification {
  if (verification === null || verification.code === null) {
    throw new ApiError(400, 'verification_missing', 'No code was sent. Request one first.');
  }
  if (verification.status === 'verified') {
    throw new ApiError(400, 'verification_already_verified', 'This verification has already been verified.');
  }
  if (verification.attempts >= MAX_ATTEMPTS) {
    const message = 'Too many failed attempts. You have to try again with the same or another method.';
    throw new ApiError(400, 'verification_failed', message);
  }
  if (verification.expireAt <= instance.clock.now()) {
    throw new ApiError(400, 'verification_expired', 'This verification has expired. You have to start over.');
  }
  const attempted = { ...verification, attempts: verification.attempts + 1 };
  if (code === verification.code) return { ...attempted, status: 'verified' };
  save(attempted);
  throw new ApiError(422, 'form_code_incorrect', 'Incorrect code', 'code');
}

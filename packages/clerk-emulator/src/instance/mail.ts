import { randomInt } from 'node:crypto';
import type { Mail, Verification } from './data';
import { ApiError } from './error';
import { newId } from './ids';
import type { Instance } from './instance';

const CODE_LIFE = 10 * 60 * 1000;
const MOST_ATTEMPTS = 5;
const REMEMBERED_MAILS = 200;

/** The code that the provider's development instances accept for a test address, such as `a+clerk_test@b.c`. */
const TEST_CODE = '424242';

/** Puts a mail with a new code where the console shows it, and begins the verification that asks for it. */
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
  if (oldest && mails.size() > REMEMBERED_MAILS) mails.delete(oldest.id);
  return { strategy, status: 'unverified', code, attempts: 0, expireAt: now + CODE_LIFE };
}

/**
 * The verification once its code was given. `save` keeps what a wrong code changes: after five of them the
 * verification is spent. Throws the provider's error for a code that is wrong, too late or not asked for.
 */
export function checkCode(
  instance: Instance,
  verification: Verification | null,
  code: string,
  save: (verification: Verification) => void,
): Verification {
  if (verification === null || verification.code === null) {
    throw new ApiError(400, 'verification_missing', 'No code was sent. Ask for one first.');
  }
  if (verification.status === 'verified') {
    throw new ApiError(400, 'verification_already_verified', 'This verification has already been verified.');
  }
  if (verification.attempts >= MOST_ATTEMPTS) {
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

import { randomInt } from 'node:crypto';
import { z } from 'zod';
import { ApiError } from './api-error';
import { type Mail, type User, Verification } from './data';
import { CodeStrategy, isVerified, KINDS, kindOf } from './identifiers';
import { newId } from './ids';
import type { Instance } from './instance';

const CODE_LIFE = 10 * 60 * 1000;
const MAX_ATTEMPTS = 5;
const MAX_MAILS = 200;

/** Code for test addresses such as `a+clerk_test@b.c` and for test numbers, as in Clerk's development instances. */
const TEST_CODE = '424242';
const TEST_RECIPIENT = /\+clerk_test@|^\+1\d{3}55501\d\d$/;

/** Returns a verification by a code that was not sent yet. */
export const unsent = (strategy: CodeStrategy): Verification => Verification.parse({ strategy });

/** A request to send a code, to the identifier with an id or else to the primary one. */
export const CodeRequest = z.object({
  strategy: CodeStrategy,
  email_address_id: z.string().optional(),
  phone_number_id: z.string().optional(),
});

/** A verification by the password or by a code. */
export const FirstFactor = z.discriminatedUnion('strategy', [
  z.object({ strategy: z.literal('password'), password: z.string() }),
  z.object({ strategy: CodeStrategy, code: z.string() }),
]);

/** Sends a code to an identifier of a user. Throws a 422 if it is not a verified identifier of the user. */
export function mailCodeToUser(
  instance: Instance,
  user: User,
  purpose: Mail['purpose'],
  request: z.output<typeof CodeRequest>,
): Verification {
  const kind = kindOf(request.strategy);
  const wanted = request[`${kind}_id`];
  const found = user[KINDS[kind].list].find((each) => isVerified(each) && each.id === (wanted ?? each.id));
  if (found === undefined) throw strategyInvalid();
  return mailCode(instance, found.value, purpose, request.strategy);
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
  strategy: CodeStrategy,
): Verification {
  const { mails } = instance.store;
  const now = instance.clock.now();
  const isTest = instance.publishableKey.development && TEST_RECIPIENT.test(to);
  const code = isTest ? TEST_CODE : String(randomInt(1_000_000)).padStart(6, '0');
  mails.put({ id: newId('ema'), to, code, purpose, sentAt: now });
  const [oldest] = mails.all();
  if (oldest && mails.size() > MAX_MAILS) mails.delete(oldest.id);
  return Verification.parse({ strategy, code, expireAt: now + CODE_LIFE });
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
  const fail = (problem: string, message: string) => new ApiError(400, `verification_${problem}`, message);
  if (verification === null || verification.code === null)
    throw fail('missing', 'No code was sent. Request one first.');
  if (verification.status === 'verified')
    throw fail('already_verified', 'This verification has already been verified.');
  if (verification.attempts >= MAX_ATTEMPTS)
    throw fail('failed', 'Too many failed attempts. You have to try again with the same or another method.');
  if (verification.expireAt <= instance.clock.now())
    throw fail('expired', 'This verification has expired. You have to start over.');
  const attempted = { ...verification, attempts: verification.attempts + 1 };
  if (code === verification.code) return { ...attempted, status: 'verified' };
  save(attempted);
  throw new ApiError(422, 'form_code_incorrect', 'Incorrect code', 'code');
}

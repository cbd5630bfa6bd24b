import { z } from 'zod';

/** An e-mail address in lower case, without surrounding white space. */
export const EmailAddress = z.string().trim().toLowerCase().pipe(z.email());

/** A phone number, such as `+15555550100`. The characters that separate its digits are removed. */
export const PhoneNumber = z
  .string()
  .transform((text) => text.replace(/[\s().-]/g, ''))
  .pipe(z.string().regex(/^\+\d{5,15}$/, 'is not a phone number'));

/** The identifiers that a code verifies, by their parameter, each with Clerk's names for it. */
export const KINDS = {
  email_address: {
    list: 'emails',
    path: 'email_addresses',
    strategy: 'email_code',
    reset: 'reset_password_email_code',
    Value: EmailAddress,
  },
  phone_number: {
    list: 'phones',
    path: 'phone_numbers',
    strategy: 'phone_code',
    reset: 'reset_password_phone_code',
    Value: PhoneNumber,
  },
} as const;
export type Kind = keyof typeof KINDS;
export const KIND_NAMES = ['email_address', 'phone_number'] as const;

/** Strategies that send a code. */
export const CodeStrategy = z.enum(KIND_NAMES.flatMap((kind) => [KINDS[kind].strategy, KINDS[kind].reset]));
export type CodeStrategy = z.output<typeof CodeStrategy>;

/** Returns the kind of identifier to which a strategy sends a code. */
export const kindOf = (strategy: string): Kind =>
  strategy.includes('phone') ? 'phone_number' : 'email_address';

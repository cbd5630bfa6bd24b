import { z } from 'zod';
import { ApiError } from './api-error';
import type { User } from './data';
import type { Instance } from './instance';

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

type Identifier = User['emails'][number];

/** Returns true unless the user has added the address and not verified it yet. */
export const isVerified = ({ verification }: Identifier): boolean => verification?.status !== 'unverified';

/** Returns the texts by which a user is searched. */
export const textsOf = ({ emails, phones, wallets, id, username, firstName, lastName }: User) => [
  ...[...emails, ...phones, ...wallets].map(({ value }) => value),
  ...[id, username, firstName, lastName],
];

/** Returns identifiers with another one in the first place, the primary one. Throws a 422 unless it is verified. */
export function withPrimary(identifiers: readonly Identifier[], id: string, parameter: string): Identifier[] {
  const primary = identifiers.find((each) => each.id === id && isVerified(each));
  if (primary) return [primary, ...identifiers.filter((each) => each !== primary)];
  const message = `${parameter} is not a verified identifier of the user.`;
  throw new ApiError(422, 'form_param_format_invalid', message, parameter);
}

/** Finds a user by verified e-mail address, verified phone number or user name. Ignores case and surrounding white space. */
export function userByIdentifier(instance: Instance, identifier: string): User | undefined {
  const value = identifier.trim().toLowerCase();
  const number = PhoneNumber.safeParse(identifier).data;
  return instance.store.users.find(
    ({ emails, phones, username }) =>
      emails.some((email) => email.value === value && isVerified(email)) ||
      phones.some((phone) => phone.value === number && isVerified(phone)) ||
      username?.toLowerCase() === value,
  );
}

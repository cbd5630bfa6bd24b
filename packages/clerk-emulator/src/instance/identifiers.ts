import { ApiError } from './api-error';
import type { User } from './data';
import { PhoneNumber } from './identifier-kinds';
import type { Instance } from './instance';

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

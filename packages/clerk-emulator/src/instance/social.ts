import { updateUser } from './accounts';
import { ApiError } from './api-error';
import type { ExternalAccount, User, Verification } from './data';
import { userByIdentifier } from './identifiers';
import { newId } from './ids';
import type { Instance } from './instance';

/** What a social provider reports about its user. */
export type SocialAccount = Pick<ExternalAccount, 'provider' | 'email' | 'firstName' | 'lastName'>;

/** Returns the user of an account: the one who has connected it, or the one with its address. */
export function ownerOf(instance: Instance, { provider, email }: SocialAccount): User | undefined {
  const isOwn = (each: ExternalAccount) =>
    each.provider === provider && each.email === email && each.verification?.status !== 'unverified';
  const connected = instance.store.users.find(({ externalAccounts }) => externalAccounts.some(isOwn));
  return connected ?? userByIdentifier(instance, email);
}

/** Connects an account with a user, unless it is connected. */
export function connect(instance: Instance, user: User, account: SocialAccount): User {
  const { provider, email } = account;
  const isConnected = user.externalAccounts.some(
    (each) => each.provider === provider && each.email === email,
  );
  if (isConnected) return user;
  const externalAccounts = [...user.externalAccounts, { id: newId('eac'), ...account }];
  return updateUser(instance, user, { externalAccounts });
}

/** Returns what a transfer needs of the other attempt. Throws a 400 if there is no such attempt. */
export function requireTransfer<Value>(value: Value | null | undefined): Value {
  if (value) return value;
  throw new ApiError(400, 'no_account_to_transfer', 'There is no account to transfer.');
}

/** Returns a verification whose account another attempt can take over, because the account already exists or was not found. */
export function transferable(before: Verification, code: string, problem: string): Verification {
  const message = `The External Account ${problem}.`;
  return { ...before, status: 'transferable', error: { code, message, long_message: message } };
}

import { requireFree, updateUser } from './accounts';
import { requireFound } from './api-error';
import type { User, Verification } from './data';
import { isVerified } from './identifiers';
import { newId } from './ids';
import type { Instance } from './instance';
import { UNSENT } from './mail';
import { deletedResource } from './organizations';
import { emailAddressResources } from './resources';

/** Returns a user with another address, which is not verified, and its id. Throws a 422 if a user has the address. */
export function withEmail(instance: Instance, user: User, value: string) {
  requireFree(instance, value, 'email_address');
  const id = newId('idn');
  return { id, user: { ...user, emails: [...user.emails, { id, value, verification: UNSENT }] } };
}

/** Returns a user with another verification of an address. An address without one is verified. */
export function withVerification(user: User, id: string, verification?: Verification): User {
  const emails = user.emails.map((email) => (email.id === id ? { ...email, verification } : email));
  return { ...user, emails };
}

/** Deletes an address of a user. If it is the primary one, a verified address takes its place. */
export function deleteEmail(instance: Instance, user: User, id: string) {
  const emails = user.emails.filter((email) => email.id !== id);
  updateUser(instance, user, { emails: emails.sort((a, b) => +isVerified(b) - +isVerified(a)) });
  return deletedResource(id, 'email_address');
}

/** An address of a user. Throws a 404 if the user does not have it. */
export const emailAddressResource = (user: User, id: string) =>
  requireFound(
    emailAddressResources(user).find((each) => each['id'] === id),
    'The email address',
  );

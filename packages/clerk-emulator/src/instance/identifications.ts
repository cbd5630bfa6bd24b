import { requireFree, updateUser } from './accounts';
import { requireFound } from './api-error';
import type { User, Verification } from './data';
import { isVerified, KINDS, type Kind } from './identifiers';
import { newId } from './ids';
import type { Instance } from './instance';
import { unsent } from './mail';
import { deletedResource } from './organizations';
import { identifierResources } from './resources';

/** Returns a user with another identifier, which is not verified, and its id. Throws a 422 if a user has the identifier. */
export function withIdentifier(instance: Instance, user: User, kind: Kind, value: string) {
  requireFree(instance, value, kind);
  const { list, strategy } = KINDS[kind];
  const id = newId('idn');
  const added = { id, value, verification: unsent(strategy) };
  return { id, user: { ...user, [list]: [...user[list], added] } };
}

/** Returns a user with another verification of an identifier. An identifier without one is verified. */
export function withVerification(user: User, kind: Kind, id: string, verification?: Verification): User {
  const { list } = KINDS[kind];
  return { ...user, [list]: user[list].map((each) => (each.id === id ? { ...each, verification } : each)) };
}

/** Deletes an identifier of a user. If it is the primary one, a verified one takes its place. */
export function deleteIdentifier(instance: Instance, user: User, kind: Kind, id: string) {
  const { list } = KINDS[kind];
  const left = user[list].filter((each) => each.id !== id);
  updateUser(instance, user, { [list]: left.sort((a, b) => +isVerified(b) - +isVerified(a)) });
  return deletedResource(id, kind);
}

/** An identifier of a user. Throws a 404 if the user does not have it. */
export const identificationResource = (user: User, kind: Kind, id: string) =>
  requireFound(
    identifierResources(user, kind).find((each) => each['id'] === id),
    `The ${kind.replace('_', ' ')}`,
  );

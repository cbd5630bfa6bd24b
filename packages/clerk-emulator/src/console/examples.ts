import type { Session, User } from '../instance/data';
import { notFound } from '../instance/error';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { deletedUserResource, sessionEventResource, userResource } from '../instance/resources';

/** Returns example data for a type of event. Its user does not exist. Throws a 404 for a type without an example. */
export function exampleEventData({ clock }: Instance, type: string): Record<string, unknown> {
  const now = clock.now();
  const email = 'example@example.com';
  const user: User = {
    id: newId('user'),
    email,
    emails: [{ id: newId('idn'), value: email }],
    phones: [],
    wallets: [],
    username: null,
    firstName: 'Example',
    lastName: 'Example',
    externalId: null,
    password: null,
    passwordUpdatedAt: null,
    publicMetadata: {},
    privateMetadata: {},
    unsafeMetadata: {},
    lastSignInAt: null,
    createdAt: now,
    updatedAt: now,
  };
  const session: Session = {
    id: newId('sess'),
    userId: user.id,
    clientId: newId('client'),
    organizationId: null,
    status: 'active',
    lastActiveAt: now,
    expireAt: now,
    createdAt: now,
    updatedAt: now,
  };
  const examples = new Map([
    ['user.created', userResource(user)],
    ['user.updated', userResource(user)],
    ['user.deleted', deletedUserResource(user)],
    ['session.created', sessionEventResource(session, user)],
  ]);
  const example = examples.get(type);
  if (example === undefined) throw notFound(`An example of ${type}`);
  return example;
}

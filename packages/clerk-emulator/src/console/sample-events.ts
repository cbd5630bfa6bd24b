import type { Session, User } from '../instance/data';
import { notFound } from '../instance/error';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { deletedUserResource, sessionEventResource, userResource } from '../instance/resources';

/**
 * The data of an event of this type in the provider's form, to be edited and sent: `user.created` is about somebody
 * whom nobody has seen yet, the others are about the newest user if there is one. Throws the 404 of any other type.
 */
export function sampleEventData(instance: Instance, type: string): Record<string, unknown> {
  const stranger = unseenUser(instance.clock.now());
  const user = instance.store.users.all().at(-1) ?? stranger;
  switch (type) {
    case 'user.created':
      return userResource(stranger);
    case 'user.updated':
      return userResource({ ...user, updatedAt: instance.clock.now() });
    case 'user.deleted':
      return deletedUserResource(user);
    case 'session.created':
      return sessionEventResource(newestSession(instance, user), user);
    default:
      throw notFound(`A sample of ${type}`);
  }
}

function unseenUser(now: number): User {
  const id = newId('user');
  return {
    id,
    emailId: newId('idn'),
    email: `${id.slice(-6).toLowerCase()}@example.com`,
    firstName: null,
    lastName: null,
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
}

function newestSession({ store, clock }: Instance, user: User): Session {
  const sessions = store.sessions.all().filter(({ userId }) => userId === user.id);
  const now = clock.now();
  return (
    sessions.at(-1) ?? {
      id: newId('sess'),
      userId: user.id,
      clientId: newId('client'),
      status: 'active',
      lastActiveAt: now,
      expireAt: now + 7 * 24 * 60 * 60 * 1000,
      reverifiedAt: null,
      reverification: null,
      createdAt: now,
      updatedAt: now,
    }
  );
}

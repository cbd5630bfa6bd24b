import type { Session, User } from '../instance/data';
import { notFound } from '../instance/error';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { deletedUserResource, sessionEventResource, userResource } from '../instance/resources';

/**
 * Returns sample data for a type of event, in Clerk's format. The sample for `user.created` describes an invented user. The
 * other samples describe the newest user of the instance, or an invented user if there are no users. The sample for
 * `session.created` describes the last session of this user, or an invented session if there is none. Throws a 404 for a type
 * without a sample.
 */
export function sampleEventData(instance: Instance, type: string): Record<string, unknown> {
  const newUser = sampleUser(instance.clock.now());
  const user = instance.store.users.all().at(-1) ?? newUser;
  switch (type) {
    case 'user.created':
      return userResource(newUser);
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

function sampleUser(now: number): User {
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

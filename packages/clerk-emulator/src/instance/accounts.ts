import { ApiError, notFound, requireFound } from './api-error';
import { DAY_SECONDS } from './clock';
import { type Client, type Session, type SignInToken, User } from './data';
import { userByIdentifier } from './identifiers';
import { newId, newRow } from './ids';
import type { Instance } from './instance';
import { membershipsOf, removeMember } from './organizations';
import { hashPassword } from './passwords';
import { deletedUserResource, sessionEventResource, userResource } from './resources';

const SESSION_SECONDS = 7 * DAY_SECONDS;

/** Limits for the length of a password, in characters. `GET /v1/environment` returns the same limits to the SDK. */
export const PASSWORD_LENGTH = { least: 8, most: 72 } as const;

export const USERNAME_LENGTH = { least: 4, most: 64 } as const;

/** Fields of a new user. A user needs at least one address, phone number, wallet or user name. The default id is random. */
export type NewUser = Partial<
  Omit<User, 'email' | 'emails' | 'phones' | 'wallets' | 'updatedAt' | 'lastSignInAt'>
> &
  Partial<Readonly<Record<'emails' | 'phones' | 'wallets', readonly string[]>>>;

/** Creates a user and sends `user.created`. `input.password` is a hash. Throws a 422 if an identifier is taken. */
export function createUser(instance: Instance, input: NewUser): User {
  const { emails = [], phones = [], wallets = [], ...fields } = input;
  for (const email of emails) requireFree(instance, email, 'email_address');
  for (const phone of phones) requireFree(instance, phone, 'phone_number');
  requireUnique(instance, fields);
  const identifiers = (values: readonly string[]) => values.map((value) => ({ id: newId('idn'), value }));
  const row = newRow(instance, 'user');
  const user = instance.store.users.put(
    User.parse({
      ...row,
      passwordUpdatedAt: fields.password ? row.updatedAt : null,
      createdAt: instance.creationTime(),
      ...fields,
      email: emails[0] ?? null,
      emails: identifiers(emails),
      phones: identifiers(phones),
      wallets: identifiers(wallets),
    }),
  );
  instance.webhooks.send('user.created', userResource(user));
  return user;
}

/** Changes a user and sends `user.updated`. Ends the sessions of a banned one. Throws a 422 for a taken name or external id. */
export function updateUser(instance: Instance, user: User, changes: Partial<Omit<User, 'id'>>): User {
  requireUnique(instance, { ...changes, id: user.id });
  const now = instance.clock.now();
  const passwordChange = changes.password === undefined ? {} : { passwordUpdatedAt: now };
  const email = (changes.emails ?? user.emails)[0]?.value ?? null;
  const updated = instance.store.users.put({ ...user, ...changes, ...passwordChange, email, updatedAt: now });
  instance.webhooks.send('user.updated', userResource(updated));
  if (changes.banned) endSessionsOf(instance, updated);
  return updated;
}

/** Deletes a user, ends the user's sessions, memberships and OAuth grants, and sends `user.deleted`. Returns its data. */
export function deleteUser(instance: Instance, user: User) {
  const { users, oauthGrants } = instance.store;
  endSessionsOf(instance, user);
  for (const membership of membershipsOf(instance, user)) removeMember(instance, membership);
  for (const { id } of oauthGrants.where('userId', user.id)) oauthGrants.delete(id);
  users.delete(user.id);
  const resource = deletedUserResource(user);
  instance.webhooks.send('user.deleted', resource);
  return resource;
}

/**
 * Signs a user in on a client, with an active organization if given, and sends `session.created`. Throws a 403 if the user is
 * banned or locked, and a 404 if the user is not a member of the organization. An actor can act as the user.
 */
export function createSession(
  instance: Instance,
  user: User,
  clientId: string,
  organizationId: string | null = null,
  { actor, sessionSeconds = SESSION_SECONDS }: Pick<SignInToken, 'actor' | 'sessionSeconds'> = {},
): Session {
  requireUnlocked(user);
  if (user.banned) {
    const message = 'You have been banned. If you think this was by mistake, please contact support.';
    throw new ApiError(403, 'user_banned', message);
  }
  const isMember = membershipsOf(instance, user).some((each) => each.organizationId === organizationId);
  if (organizationId !== null && !isMember) throw notFound(`The membership in ${organizationId}`);
  const row = newRow(instance, 'sess');
  const now = row.createdAt;
  const session = instance.store.sessions.put({
    ...row,
    userId: user.id,
    clientId,
    organizationId,
    status: 'active',
    lastActiveAt: now,
    expireAt: now + sessionSeconds * 1000,
    actor,
  });
  const signedIn = instance.store.users.put({ ...user, lastSignInAt: now });
  changeClient(instance, clientId, { updatedAt: now });
  instance.webhooks.send('session.created', sessionEventResource(instance, session, signedIn));
  return session;
}

/** Returns the organization that is active after a sign-in (see the setting `activeOrganization`). */
export function organizationAtSignIn(instance: Instance, user: User): string | null {
  if (instance.settings.activeOrganization === 'none') return null;
  const sessions = instance.store.sessions.where('userId', user.id);
  const last = sessions.at(-1) ?? membershipsOf(instance, user).at(-1);
  return last?.organizationId ?? null;
}

/** Throws Clerk's 403 if the user is locked. A lock prevents sign-ins and leaves the sessions of the user active. */
export function requireUnlocked({ locked }: User): void {
  if (!locked) return;
  const message = 'Your account is locked. For more information, please contact support.';
  throw new ApiError(403, 'user_locked', message);
}

/** Ends a session, unless it has ended, and sends the event for its new status, such as `session.revoked`. */
export function endSession(
  instance: Instance,
  session: Session,
  status: 'ended' | 'removed' | 'revoked',
): Session {
  if (session.status !== 'active') return session;
  const now = instance.clock.now();
  const ended = instance.store.sessions.put({ ...session, status, updatedAt: now });
  changeClient(instance, session.clientId, { updatedAt: now });
  const user = requireUser(instance, session.userId);
  instance.webhooks.send(`session.${status}`, sessionEventResource(instance, ended, user));
  return ended;
}

/** Changes a client. Does nothing for an unknown id, because a session of the Backend API has no client. */
export function changeClient({ store }: Instance, id: string, changes: Partial<Client>): void {
  const client = store.clients.get(id);
  if (client) store.clients.put({ ...client, ...changes });
}

/** Returns the session if it is active and its user exists. Marks an active session as expired after `expireAt`. */
export function activeSession(instance: Instance, id: string): Session | undefined {
  const session = instance.store.sessions.get(id);
  if (session?.status !== 'active' || !instance.store.users.get(session.userId)) return undefined;
  if (session.expireAt > instance.clock.now()) return session;
  instance.store.sessions.put({ ...session, status: 'expired' });
  return undefined;
}

/** Returns a session. Marks an active session as expired after `expireAt`. Throws a 404 for an unknown id. */
export function requireSession(instance: Instance, id: string): Session {
  activeSession(instance, id);
  return requireFound(instance.store.sessions.get(id), `Session ${id}`);
}

/** Returns the active sessions of a client or of a user. The last one is the session that was active last. */
export function activeSessions(instance: Instance, id: string): Session[] {
  return instance.store.sessions
    .all()
    .filter(({ clientId, userId }) => clientId === id || userId === id)
    .filter((session) => activeSession(instance, session.id) !== undefined)
    .sort((a, b) => a.lastActiveAt - b.lastActiveAt);
}

/** Ends the active sessions of a user, except `kept`. */
export function endSessionsOf(instance: Instance, user: User, kept?: Session): void {
  for (const session of instance.store.sessions.where('userId', user.id))
    if (session.id !== kept?.id) endSession(instance, session, 'revoked');
}

/** Returns a user. Throws for an unknown id: a 404, or a 422 if the operation has no 404 for the parameter with the id. */
export function requireUser({ store }: Instance, id: string, parameter?: string): User {
  const user = store.users.get(id);
  if (user || !parameter) return requireFound(user, `User ${id}`);
  throw new ApiError(422, 'form_resource_not_found', `The user ${id} was not found.`, parameter);
}

/** Throws a 422 if a user, other than the one with the id, has the identifier. */
export function requireFree(instance: Instance, identifier: string, parameter: string, id?: string): void {
  const user = userByIdentifier(instance, identifier);
  if (user && user.id !== id) throw identifierTaken(parameter);
}

/** Throws a 422 if a new user name is invalid, or if a user other than `id` has the user name or the external id. */
function requireUnique(instance: Instance, { id, username, externalId }: Partial<User>): void {
  if (username && username !== instance.store.users.get(id ?? '')?.username) requireUsername(username);
  if (username) requireFree(instance, username, 'username', id);
  const known = externalId && instance.store.users.find((user) => user.externalId === externalId);
  if (known && known.id !== id) throw identifierTaken('external_id');
}

/** Throws Clerk's 422 unless a user name has a valid length and valid characters. */
export function requireUsername(username: string): void {
  const { least, most } = USERNAME_LENGTH;
  const isShort = username.length < least || username.length > most;
  if (!isShort && /^(?=.*\D)[\w-]+$/.test(username)) return;
  const code = `form_username_invalid_${isShort ? 'length' : 'character'}`;
  const message = isShort
    ? `Your username must be between ${least} and ${most} characters long.`
    : "Your username can only contain letters, numbers and '_' or '-', and needs one character that is not a number.";
  throw new ApiError(422, code, message, 'username');
}

function identifierTaken(parameter: string): ApiError {
  const message = `That ${parameter.replace('_', ' ')} is taken. Please try another.`;
  return new ApiError(422, 'form_identifier_exists', message, parameter);
}

/** Returns the hash of a password. Throws a 422 if the password is too short or too long. */
export function acceptPassword(password: string, parameter: string): string {
  const { least, most } = PASSWORD_LENGTH;
  const isShort = password.length < least;
  if (!isShort && password.length <= most) return hashPassword(password);
  const code = `form_password_length_too_${isShort ? 'short' : 'long'}`;
  const message = `Passwords must be ${isShort ? `${least} characters or more` : `${most} characters or less`}.`;
  throw new ApiError(422, code, message, parameter);
}

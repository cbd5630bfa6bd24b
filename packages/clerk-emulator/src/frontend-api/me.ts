import { z } from 'zod';
import { parse, type Routes } from '../http';
import {
  acceptPassword,
  activeSession,
  deleteUser,
  endSession,
  endSessionsOf,
  updateUser,
} from '../instance/accounts';
import type { User } from '../instance/data';
import { notFound } from '../instance/error';
import type { Instance } from '../instance/instance';
import { requirePassword } from '../instance/passwords';
import {
  deletedUserResource,
  deviceResource,
  emailAddressResources,
  publicUserResource,
} from '../instance/resources';
import { type BrowserRequest, requireSignedIn } from './browser';
import { browserMemberships, currentSession } from './session';

const Names = z.object({ first_name: z.string().optional(), last_name: z.string().optional() });
const PasswordChange = z.object({
  current_password: z.string().optional(),
  new_password: z.string(),
  sign_out_of_other_sessions: z.stringbool().default(false),
});

/** Returns the routes of the account page. They read, rename and delete the user, change the password and revoke sessions. */
export function meRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const own = (user: User) => publicUserResource(user, browserMemberships(instance, user));
  return {
    'GET /v1/me': (request) => own(requireSignedIn(instance, request).user),
    'PATCH /v1/me': (request) => {
      const { user } = requireSignedIn(instance, request);
      const { first_name = user.firstName, last_name = user.lastName } = parse(Names, request.body);
      return own(updateUser(instance, user, { firstName: first_name || null, lastName: last_name || null }));
    },
    'POST /v1/me/change_password': (request) => {
      const { user, session } = requireSignedIn(instance, request);
      const change = parse(PasswordChange, request.body);
      if (user.password !== null) requirePassword(user, change.current_password ?? '', 'current_password');
      const password = acceptPassword(change.new_password, 'new_password');
      const updated = updateUser(instance, user, { password });
      if (change.sign_out_of_other_sessions) endSessionsOf(instance, updated, session);
      return own(updated);
    },
    'DELETE /v1/me': (request) => {
      const { user } = requireSignedIn(instance, request);
      deleteUser(instance, user);
      return deletedUserResource(user);
    },
    'POST /v1/me/sessions/:id/revoke': (request) => {
      const { user } = requireSignedIn(instance, request);
      const session = instance.store.sessions.get(request.id);
      if (session?.userId !== user.id) throw notFound('The session');
      const ended = endSession(instance, session, 'revoked');
      return currentSession(instance, ended, request.browser);
    },
  };
}

/** Returns the active sessions of the signed-in user, in the format of the list of devices on the account page. */
export function activeDevices(instance: Instance, request: BrowserRequest): Record<string, unknown>[] {
  const { user } = requireSignedIn(instance, request);
  return instance.store.sessions
    .all()
    .filter((session) => session.userId === user.id && activeSession(instance, session.id) !== undefined)
    .map(deviceResource);
}

/** Returns the email addresses of the signed-in user. */
export function ownAddresses(instance: Instance, request: BrowserRequest): Record<string, unknown>[] {
  return emailAddressResources(requireSignedIn(instance, request).user);
}

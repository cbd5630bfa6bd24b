import { z } from 'zod';
import { parse, type Routes } from '../http';
import { activeSessions, endSession, sessionTasks } from '../instance/accounts';
import type { Session, User } from '../instance/data';
import type { Instance } from '../instance/instance';
import { issueToken } from '../instance/issued-tokens';
import { publicMembershipResource } from '../instance/organization-resources';
import { activeOrganization, membershipsOf } from '../instance/organizations';
import {
  browserSessionResource,
  clientResource,
  signInResource,
  signUpResource,
} from '../instance/resources';
import { type Browser, type BrowserRequest, requireOwnSession } from './browser';

type Resource = Record<string, unknown> | null;

/** An empty id selects the personal account. */
const Touch = z.object({ active_organization_id: z.string().optional() });

/** Returns the routes that read and create the client of a browser, and record the activity of sessions and end them. */
export function sessionRoutes(instance: Instance): Routes<BrowserRequest, Resource> {
  const { clients, sessions } = instance.store;
  const end = (status: 'ended' | 'removed') => (request: BrowserRequest) => {
    const session = requireOwnSession(instance, request, request.id);
    return currentSession(instance, endSession(instance, session, status), request.browser);
  };
  const endAll = ({ browser }: BrowserRequest) => {
    for (const session of browser.client ? activeSessions(instance, browser.client.id) : []) {
      endSession(instance, session, 'removed');
    }
  };
  const establish = ({ browser }: BrowserRequest) => {
    browser.establish();
    return currentClient(instance, browser);
  };
  return {
    'GET /v1/client': ({ browser }) => currentClient(instance, browser),
    'PUT /v1/client': establish,
    'POST /v1/client': establish,
    'DELETE /v1/client': (request) => {
      endAll(request);
      const { client } = request.browser;
      if (client) clients.put({ ...client, signInId: null, signUpId: null });
      return null;
    },
    'DELETE /v1/client/sessions': (request) => {
      endAll(request);
      return currentClient(instance, request.browser);
    },
    'GET /v1/client/sessions/:id': (request) =>
      currentSession(instance, requireOwnSession(instance, request, request.id), request.browser),
    'POST /v1/client/sessions/:id/touch': (request) => {
      const session = requireOwnSession(instance, request, request.id);
      const { active_organization_id: active } = parse(Touch, request.body);
      const organizationId = activeOrganization(instance, session, active);
      const touched = sessions.put({ ...session, organizationId, lastActiveAt: instance.clock.now() });
      return currentSession(instance, touched, request.browser);
    },
    'POST /v1/client/sessions/:id/end': end('ended'),
    'POST /v1/client/sessions/:id/remove': end('removed'),
  };
}

/** Returns the client of the browser with a new token for each active session, or null if the browser has no client. */
export function currentClient(instance: Instance, browser: Browser): Resource {
  const { client } = browser;
  if (client === undefined) return null;
  const { users, signIns, signUps } = instance.store;
  const signIn = signIns.get(client.signInId ?? '');
  const signUp = signUps.get(client.signUpId ?? '');
  return clientResource(client, {
    sessions: activeSessions(instance, client.id).map((session) =>
      currentSession(instance, session, browser),
    ),
    signIn:
      signIn && signIn.status !== 'complete'
        ? signInResource(signIn, users.get(signIn.userId ?? ''), instance)
        : null,
    signUp: signUp && signUp.status !== 'complete' ? signUpResource(signUp, instance) : null,
  });
}

/** Returns the JSON object of a session for the browser. It contains a new token if the session is active. */
export function currentSession(
  instance: Instance,
  session: Session,
  browser: Browser,
): Record<string, unknown> {
  const user = instance.store.users.get(session.userId);
  const isActive = session.status === 'active' && user !== undefined;
  const memberships = user ? browserMemberships(instance, user) : [];
  const token = isActive ? issueToken(instance, session, browser) : undefined;
  const tasks = sessionTasks(instance, session);
  return browserSessionResource(session, { user, memberships, token, tasks, now: instance.clock.now() });
}

/** Returns the memberships of the signed-in user. */
export function browserMemberships(instance: Instance, user: User): Record<string, unknown>[] {
  return membershipsOf(instance, user).map((membership) => publicMembershipResource(instance, membership));
}

import { z } from 'zod';
import { parse, type Routes, wrapHandlers } from '../http';
import { activeSessions, endSession } from '../instance/accounts';
import { signInResource, signUpResource } from '../instance/attempt-resources';
import type { Session, User } from '../instance/data';
import type { Instance } from '../instance/instance';
import { factorAge, issueToken } from '../instance/issued-tokens';
import { publicMembershipResource } from '../instance/organization-resources';
import { activeOrganization, membershipsOf } from '../instance/organizations';
import {
  datedResource,
  publicUserData,
  publicUserResource,
  sessionBase,
  sessionStatus,
} from '../instance/resources';
import { type Browser, type BrowserRequest, requireOwnSession } from './browser';

type Resource = Record<string, unknown> | null;

/** An empty id selects the personal account. Without effect: `intent`, which names the reason of a call. */
const Touch = z.object({ active_organization_id: z.string().optional() });

/** Returns the routes that read and create the client of a browser, and record the activity of sessions and end them. */
export function sessionRoutes(instance: Instance): Routes<BrowserRequest, Resource> {
  const { clients, sessions } = instance.store;
  const endAll = ({ browser }: BrowserRequest) => {
    for (const session of browser.client ? activeSessions(instance, browser.client.id) : []) {
      endSession(instance, session, 'removed');
    }
  };
  const steps: Readonly<Record<string, (session: Session, body: unknown) => Session>> = {
    'GET /v1/client/sessions/:id': (session) => session,
    'POST /v1/client/sessions/:id/touch': (session, body) => {
      const { active_organization_id: active } = parse(Touch, body);
      const organizationId = activeOrganization(instance, session, active);
      return sessions.put({ ...session, organizationId, lastActiveAt: instance.clock.now() });
    },
    'POST /v1/client/sessions/:id/end': (session) => endSession(instance, session, 'ended'),
    'POST /v1/client/sessions/:id/remove': (session) => endSession(instance, session, 'removed'),
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
    ...wrapHandlers(steps, (step) => (request: BrowserRequest) => {
      const session = requireOwnSession(instance, request, request.id);
      return currentSession(instance, step(session, request.body), request.browser);
    }),
  };
}

/** Returns the client of the browser with a new token for each active session, or null if the browser has no client. */
export function currentClient(instance: Instance, browser: Browser): Resource {
  const { client } = browser;
  if (client === undefined) return null;
  const { signIns, signUps } = instance.store;
  const signIn = signIns.get(client.signInId ?? '');
  const signUp = signUps.get(client.signUpId ?? '');
  const sessions = activeSessions(instance, client.id);
  return {
    object: 'client',
    ...datedResource(client),
    sessions: sessions.map((session) => currentSession(instance, session, browser)),
    sign_in: signIn && signIn.status !== 'complete' ? signInResource(instance, signIn) : null,
    sign_up: signUp && signUp.status !== 'complete' ? signUpResource(instance, signUp) : null,
    last_active_session_id: sessions.at(-1)?.id ?? null,
    last_authentication_strategy: client.lastStrategy,
    cookie_expires_at: null,
    captcha_bypass: true,
  };
}

/** Returns a session with its user and, while it is active, a new token for the browser. */
export function currentSession(
  instance: Instance,
  session: Session,
  browser: Browser,
): Record<string, unknown> {
  const user = instance.store.users.get(session.userId);
  const isActive = session.status === 'active' && user !== undefined;
  return {
    ...sessionBase(instance, session),
    tasks: sessionStatus(instance, session) === 'pending' ? [{ key: 'choose-organization' }] : null,
    last_active_token: isActive ? { object: 'token', jwt: issueToken(instance, session, browser) } : null,
    last_active_organization_id: session.organizationId,
    factor_verification_age: factorAge(session, instance.clock.now()),
    ...(user && { user: publicUserResource(user, browserMemberships(instance, user)) }),
    public_user_data: user ? publicUserData(user) : null,
    ...datedResource(session),
  };
}

/** Returns the memberships of the signed-in user. */
export function browserMemberships(instance: Instance, user: User): Record<string, unknown>[] {
  return membershipsOf(instance, user).map((membership) => publicMembershipResource(instance, membership));
}

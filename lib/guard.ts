import type { NextRequest } from 'next/server';
import type { AuthenticatedContext } from './api/schemas';
import { environment } from './env';
import { json, type RouteContext, type RouteHandler, route } from './http/route';
import { authStateOf, SIGNED_IN } from './idp/auth-state';
import { keepSessionUser, recallSessionUser, sessionUserOf } from './idp/verified-sessions';
import { addLogFields } from './log';
import { resolveUserId } from './register';
import { withSpan } from './telemetry/with-span';

/** Runs only for a verified session; what it throws is answered as contract 7 says. */
export type GuardedHandler<S extends RouteContext> = (
  request: NextRequest,
  context: AuthenticatedContext,
  segment: S,
) => Promise<Response> | Response;

/** The verified session's user, or undefined. */
async function sessionUserId({ headers }: NextRequest): Promise<string | undefined> {
  const state = authStateOf(headers);
  if (state?.status !== SIGNED_IN) {
    addLogFields({ reason: state?.reason ?? 'no-auth-state' });
    return undefined;
  }
  // With an empty secret the SDK would believe auth headers that anyone can sign: no valid environment, no answer.
  environment();
  const authorization = headers.get('authorization');
  const remembered = recallSessionUser(state, authorization);
  if (remembered !== undefined) return remembered;
  // Loaded on first use. A middleware in the same process has already cached the user, so the SDK is seldom needed here.
  const { auth } = await import('./idp/server');
  const verdict = sessionUserOf(await auth());
  if (verdict.user === undefined) addLogFields({ reason: verdict.reason });
  else keepSessionUser(state, authorization, verdict.user);
  return verdict.user;
}

/** Rules 2 to 4 of contract 5.2; undefined without a verified session. */
async function authenticate(request: NextRequest): Promise<AuthenticatedContext | undefined> {
  const identityProviderUserId = await sessionUserId(request);
  if (identityProviderUserId === undefined) return undefined;
  const userId = await resolveUserId(identityProviderUserId);
  return Object.freeze({ isAuthenticated: true, userId, identityProviderUserId });
}

/**
 * Makes a route whose handler runs only for a verified session, with the context of contract 2.2 and the route's own
 * segment (dynamic params) behind it. Without one the answer is 401 `{"message": "Unauthorized"}`, and neither cache
 * nor database is asked. A failure of the database is the central 500; a failure of the cache is never seen.
 *
 * OPTIONS is not guarded (contract 5.2, rule 1). As it has no context, the handler does not run for it: the answer is 204.
 * A route that needs more for a preflight exports an OPTIONS of its own. The log names the route by `path`, its folder's.
 */
export function guard<S extends RouteContext>(handler: GuardedHandler<S>, path?: string): RouteHandler<S> {
  return route(async (request, segment) => {
    if (request.method === 'OPTIONS') return new Response(null, { status: 204 });
    const context = await withSpan(
      'guard',
      () => authenticate(request),
      (passed) => (passed ? 'passed' : 'rejected'),
    );
    return context ? handler(request, context, segment) : json({ message: 'Unauthorized' }, 401);
  }, path);
}

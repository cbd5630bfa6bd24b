import type { NextRequest } from 'next/server';
import type { AuthenticatedContext } from './api/schemas';
import { json, type RouteContext, type RouteHandler, route } from './http/route';
import { readVerdict } from './idp/auth-state';
import type { Verdict } from './idp/session-user';
import { addLogFields } from './log';
import { withSpan } from './telemetry/with-span';
import { resolveUserId } from './user-id';

/** Handler of a request with a verified session. `route` (lib/http/route.ts) turns its errors into responses. */
export type GuardedHandler<C extends RouteContext> = (
  request: NextRequest,
  context: AuthenticatedContext,
  routeContext: C,
) => Promise<Response> | Response;

/**
 * Returns the authenticated context, which has the internal id and the identity provider's id of the user. The verdict contains
 * either the user of the session or the reason why there is no user. Returns undefined if there is no user, or if the token was
 * issued before an operator deleted ("forgot") the user. In both cases, adds the reason to the log line. Implements
 * docs/contract.md, 5.2, rules 2 to 4.
 */
export function contextOf(verdict: Verdict): Promise<AuthenticatedContext | undefined> {
  return withSpan(
    'guard',
    async () => {
      if (verdict.user === undefined) {
        addLogFields({ reason: verdict.reason });
        return undefined;
      }
      const userId = await resolveUserId(verdict.user, verdict.issuedAt);
      if (userId === undefined) {
        addLogFields({ reason: 'forgotten' });
        return undefined;
      }
      return Object.freeze({ isAuthenticated: true, userId, identityProviderUserId: verdict.user });
    },
    (context) => (context ? 'passed' : 'rejected'),
  );
}

/**
 * Creates a route whose handler runs only for a verified session. The handler gets the request, the authenticated context with
 * both ids of the user, and the route context of Next.js with the dynamic params.
 *
 * A request without a session gets a 401 `{"message": "Unauthorized"}` before any call to the cache or the database. A user
 * whom an operator has deleted ("forgotten") gets this 401 too if the token was issued before the deletion. A database failure
 * is a 500. A cache failure has no effect on the response. An OPTIONS request is not guarded (docs/contract.md, 5.2). It gets a
 * 204, and the handler does not run. A route that has to handle preflight requests exports its own OPTIONS handler. `path` is
 * the path of the route's folder. The log line of a request contains this path.
 */
export function guard<C extends RouteContext>(handler: GuardedHandler<C>, path?: string): RouteHandler<C> {
  return route(async (request, routeContext) => {
    if (request.method === 'OPTIONS') return new Response(null, { status: 204 });
    const context = await contextOf(readVerdict(request.headers));
    return context ? handler(request, context, routeContext) : json({ message: 'Unauthorized' }, 401);
  }, path);
}

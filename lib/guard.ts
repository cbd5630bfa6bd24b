import './idp/credentials';
import { auth } from '@clerk/nextjs/server';
import type { NextRequest } from 'next/server';
import { environment } from './env';
import { HttpError, type RouteHandler, route, type Segment } from './http';
import { IdentityProviderUserId } from './identity-provider-user-id';
import { resolveUserId } from './resolve-user-id';

/**
 * Who makes the request, once the guard has passed it (SPEC 2.2).
 *
 * @public
 */
export interface AuthenticatedContext {
  readonly isAuthenticated: true;
  /** The internal user id: the stable id for the service's own data. */
  readonly userId: string;
  /** The id that the identity provider reported for this request. */
  readonly identityProviderUserId: string;
}

/** Runs only for a verified session; what it throws is answered as SPEC 7 says. */
export type GuardedHandler<S extends Segment> = (
  request: NextRequest,
  context: AuthenticatedContext,
  segment: S,
) => Promise<Response> | Response;

/** The verified session's user, or undefined. */
async function sessionUserId(): Promise<string | undefined> {
  // With an empty secret the SDK would believe auth headers that anyone can sign: no valid environment, no answer.
  environment();
  const { isAuthenticated, userId } = await auth();
  return isAuthenticated ? IdentityProviderUserId.safeParse(userId).data : undefined;
}

/** SPEC 5.2, rules 2 to 4. */
async function authenticate(): Promise<AuthenticatedContext> {
  const identityProviderUserId = await sessionUserId();
  if (!identityProviderUserId) throw new HttpError(401, 'Unauthorized');
  const userId = await resolveUserId(identityProviderUserId);
  return Object.freeze({ isAuthenticated: true, userId, identityProviderUserId });
}

/**
 * Makes a route whose handler runs only for a verified session, with the context of SPEC 2.2 and the route's own
 * segment (dynamic params) behind it. Without one the answer is 401 `{"message": "Unauthorized"}`, and neither cache
 * nor database is asked. A failure of the database is the central 500; a failure of the cache is never seen.
 *
 * OPTIONS is not guarded (SPEC 5.2, rule 1). As it has no context, the handler does not run for it: the answer is 204.
 * A route that needs more for a preflight exports an OPTIONS of its own.
 */
export function guard<S extends Segment>(handler: GuardedHandler<S>): RouteHandler<S> {
  return route(async (request, segment) => {
    if (request.method === 'OPTIONS') return new Response(null, { status: 204 });
    return handler(request, await authenticate(), segment);
  });
}

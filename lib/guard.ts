import type { NextRequest } from 'next/server';
import { environment } from './env';
import { json, type RouteHandler, route, type Segment } from './http/route';
import { IdentityProviderUserId } from './identity-provider-user-id';
import { authStateOf, SIGNED_IN } from './idp/auth-state';
import { credentialMemory } from './idp/credential-memory';
import { auth } from './idp/server';
import { noteFacts } from './log';
import { resolveUserId } from './resolve-user-id';

/**
 * Who makes the request, once the guard has passed it (contract 2.2).
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

/** Runs only for a verified session; what it throws is answered as contract 7 says. */
export type GuardedHandler<S extends Segment> = (
  request: NextRequest,
  context: AuthenticatedContext,
  segment: S,
) => Promise<Response> | Response;

/** The user ids of sessions that the SDK has verified. */
const verified = credentialMemory();

/** The verified session's user, or undefined. */
async function sessionUserId({ headers }: NextRequest): Promise<string | undefined> {
  const state = authStateOf(headers);
  if (state?.status !== SIGNED_IN) {
    noteFacts({ reason: state?.reason ?? 'no-auth-state' });
    return undefined;
  }
  // All that `auth()` judges by: it refuses an OAuth or machine token as a bearer, which the middleware lets pass.
  const credential = [state.token, state.signature, headers.get('authorization') ?? ''];
  const remembered = verified.recall(credential);
  if (remembered !== undefined) return remembered;
  // The SDK has read its secret when it was loaded, behind lib/idp/server.ts. With an empty one it would believe auth headers
  // that anyone can sign: no valid environment, no answer.
  environment();
  const { isAuthenticated, userId, sessionClaims, sessionStatus } = await auth();
  const identityProviderUserId = IdentityProviderUserId.safeParse(userId).data;
  if (!isAuthenticated || identityProviderUserId === undefined) {
    if (isAuthenticated) noteFacts({ reason: 'no-user-id' });
    else noteFacts({ reason: sessionStatus === 'pending' ? 'pending-session' : 'malformed' });
    return undefined;
  }
  verified.keep(credential, identityProviderUserId, sessionClaims.exp * 1000);
  return identityProviderUserId;
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
export function guard<S extends Segment>(handler: GuardedHandler<S>, path?: string): RouteHandler<S> {
  return route(async (request, segment) => {
    if (request.method === 'OPTIONS') return new Response(null, { status: 204 });
    const context = await authenticate(request);
    return context ? handler(request, context, segment) : json({ message: 'Unauthorized' }, 401);
  }, path);
}

import type { NextRequest } from 'next/server';
import type { AuthenticatedContext } from '#lib/api/schemas';
import { addLogFields } from '#lib/http/request-log';
import { ensureApiRequest, readVerdict, type Verdict } from '#lib/idp/verdict';
import { HttpError } from './http/error';
import { json, type RouteContext, type RouteHandler, route } from './http/route';
import { resolveId } from './ids/resolve';
import { withSpan } from './telemetry/current';

/** Returns the caller of a request with this verdict. The response to a request without a caller is a 401. */
export type Resolve<T> = (verdict: Verdict, headers: Headers) => Promise<T | undefined>;

async function contextOf(verdict: Verdict): Promise<AuthenticatedContext | undefined> {
  const { user, actor, reason = 'forgotten', isUnchecked, isAccessToken } = verdict;
  if (actor) addLogFields({ impersonated: true });
  const resolved = user === undefined ? undefined : await resolveId('user', user, verdict.issuedAt);
  if (user !== undefined && resolved?.state === 'linked') {
    const { state, id: userId, ...fields } = resolved;
    addLogFields(fields);
    return Object.freeze({ isAuthenticated: true, userId, identityProviderUserId: user });
  }
  addLogFields({ reason });
  if (isUnchecked && !isAccessToken) throw new HttpError(503, 'Service Unavailable', { 'retry-after': '1' });
  return undefined;
}

/**
 * Returns both ids of the user of a verdict. Returns undefined without a verified session, and for a forgotten user, whom an
 * operator deleted after the session token was issued. Throws an HttpError 503 if the session could not be checked. Implements
 * docs/contract.md, 5.2, rules 2 to 4.
 */
export const resolveUser = (verdict: Verdict): Promise<AuthenticatedContext | undefined> =>
  withSpan(
    'guard',
    () => contextOf(verdict),
    (context) => (context ? 'passed' : 'rejected'),
  );

/** Handler of a guarded route. `caller` is the context of the guard. */
export type GuardedHandler<T, C extends RouteContext> = (
  request: NextRequest,
  caller: T,
  context: C,
) => Promise<Response> | Response;

/** Creates a route whose handler runs only if `resolve` returns the caller of the request. Otherwise, the response is a 401. */
export function guardBy<T, C extends RouteContext>(
  resolve: Resolve<T>,
  handler: GuardedHandler<T, C>,
): RouteHandler<C> {
  return route(async (request, context) => {
    if (request.method === 'OPTIONS') return new Response(null, { status: 204 });
    ensureApiRequest(request);
    const caller = await resolve(await readVerdict(request.headers), request.headers);
    // Costs less than an error, which has a stack.
    if (caller === undefined) return json({ message: 'Unauthorized' }, 401);
    return handler(request, caller, context);
  });
}

/**
 * Creates a route whose handler runs only for a verified session, with a context that contains both ids of the user.
 *
 * Without a session, the response is a 401 `{"message": "Unauthorized"}`, before any call to the cache or the database. A
 * forgotten user gets the same 401. If the session could not be checked, the response is a 503. A database failure is a 500. A
 * cache failure has no effect. An OPTIONS request gets a 204, and the handler does not run. A route that handles preflight
 * requests exports its own OPTIONS handler.
 */
export const guard = <C extends RouteContext>(
  handler: GuardedHandler<AuthenticatedContext, C>,
): RouteHandler<C> => guardBy(resolveUser, handler);

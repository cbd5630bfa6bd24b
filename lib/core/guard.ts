import { HttpError } from './error';
import type { AuthenticatedContext, Link, TenantContext } from './link';
import type { Sessions } from './ports';
import { type createRoute, json, type RouteContext, type RouteHandler } from './route';
import type { Verdict } from './verdict';

const NO_CREDENTIAL: Verdict = { reason: 'no-credential' };

/** Returns the caller of a request with this verdict. The response to a request without a caller is a 401. */
export type CallerOf<T> = (verdict: Verdict, headers: Headers) => Promise<T | undefined>;

/** Handler of a guarded route. `caller` is the context of the guard. */
export type GuardedHandler<T, C extends RouteContext, R> = (
  request: R,
  caller: T,
  context: C,
) => Promise<Response> | Response;

/** Creates the guards of routes whose requests `sessions` authenticates. `route` is what `createRoute` returned. */
export function createGuards<R extends Request>(
  { resolveUser, resolveTenant, observer }: Link,
  sessions: Sessions<R>,
  route: ReturnType<typeof createRoute<R>>,
) {
  /** Creates a route whose handler runs only if `callerOf` returns the caller of the request. Otherwise, the response is a 401. */
  const guardBy = <T, C extends RouteContext>(
    callerOf: CallerOf<T>,
    handler: GuardedHandler<T, C, R>,
  ): RouteHandler<C, R> =>
    route(async (request, context) => {
      if (request.method === 'OPTIONS') return new Response(null, { status: 204 });
      const verdict = (await sessions.authenticate(request)) ?? NO_CREDENTIAL;
      if (verdict.provider !== undefined) observer.note({ provider: verdict.provider });
      const caller = await callerOf(verdict, request.headers);
      // Costs less than an error, which has a stack.
      if (caller === undefined) return json({ message: 'Unauthorized' }, 401);
      return handler(request, caller, context);
    });

  function forbid(reason: string): never {
    observer.note({ reason });
    throw new HttpError(403, 'Forbidden');
  }

  return {
    guardBy,
    /**
     * Creates a route whose handler runs only for a verified session, with a context that contains both ids of the user.
     *
     * Without a session, the response is a 401 `{"message": "Unauthorized"}`, before any call to the cache or the database. A
     * forgotten user gets the same 401. If the session could not be checked, the response is a 503. A database failure is a 500.
     * A cache failure has no effect. An OPTIONS request gets a 204, and the handler does not run. A route that handles preflight
     * requests exports its own OPTIONS handler.
     */
    guard: <C extends RouteContext>(handler: GuardedHandler<AuthenticatedContext, C, R>) =>
      guardBy(resolveUser, handler),
    /**
     * Creates a route like `guard`, whose handler runs only if an organization is active in the session and, with `role`, only if
     * the user has exactly this role there (`org:admin`). The first request of an organization creates its tenant.
     *
     * Without a session, the response is a 401. Without an active organization or with another role, it is a 403
     * `{"message": "Forbidden"}`, before any call to the cache or the database. A forgotten user gets a 401 and creates no tenant.
     * For an organization that was forgotten, or deleted at the provider, the response is a 403.
     */
    guardTenant: <C extends RouteContext>(
      handler: GuardedHandler<TenantContext, C, R>,
      { role }: { readonly role?: string } = {},
    ) =>
      guardBy(async (verdict) => {
        const { user, organization } = verdict;
        if (user !== undefined && organization === undefined) forbid('no-organization');
        if (organization && role !== undefined && role !== organization.role) forbid('organization-role');
        const resolved = await resolveTenant(verdict);
        if (resolved.user && resolved.tenant === undefined) forbid('forgotten-organization');
        return resolved.tenant;
      }, handler),
  };
}

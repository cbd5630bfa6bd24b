import type { NextRequest } from 'next/server';
import { environment } from './base/env';
import { HttpError } from './core/error';
import type { GuardedHandler } from './core/guard';
import type { AuthenticatedContext } from './core/link';
import type { Actor, Verdict } from './core/verdict';
import { guardBy } from './guard';
import { bearerToken, passesCsrfCheck } from './http/credential';
import { addLogFields } from './http/request-log';
import { json, type RouteContext, type RouteHandler, route } from './http/route';
import { link } from './link';
import { mainProvider } from './main-provider';

/** The authenticated user of a request, and who acts for the user: an OAuth client, a person or an agent. */
export interface ResourceContext extends AuthenticatedContext {
  /** The client and its scopes. Both are undefined for a session, which only a resource with `sessions` accepts. */
  readonly clientId?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly actor?: Actor | undefined;
}

/** The path under which each protected resource has its metadata (RFC 9728, 3.1). */
export const METADATA_PATH = '/.well-known/oauth-protected-resource';

/** A path that has one spelling for clients, proxies and Next.js. */
const PATH = /^\/(?:[\w~-]+(?:\/[\w~-]+)*)?$/;

/** Lets pages of every origin read the response to a request without cookies. */
const CORS = { 'access-control-allow-origin': '*', 'access-control-expose-headers': '*' };
const PREFLIGHT = {
  'access-control-allow-methods': '*',
  // The wildcard does not include this header.
  'access-control-allow-headers': 'authorization, *',
  'access-control-max-age': '7200',
};

const withCors =
  <C extends RouteContext>(handler: RouteHandler<C>): RouteHandler<C> =>
  async (request, context) => {
    const response = await handler(request, context);
    for (const [name, value] of Object.entries(CORS)) response.headers.set(name, value);
    return response;
  };

const hasBearer = (headers: Headers) => bearerToken(headers) !== undefined;

/** Returns true if the credential is a cookie that a page of another origin sends. The rule of a POST applies to all methods. */
const hasForeignCookies = ({ user, isUnchecked }: Verdict, headers: Headers) =>
  !hasBearer(headers) && (user !== undefined || isUnchecked) && !passesCsrfCheck('POST', headers, []);

const OPTIONS = withCors(route(() => new Response(null, { status: 204, headers: PREFLIGHT })));

interface Options {
  /** The scopes that an access token must have. */
  readonly scopes: readonly string[];
  /** Other scopes for which a client should ask, such as `offline_access`. */
  readonly optionalScopes?: readonly string[];
  /** Accepts session tokens too, which have no audience and no scopes. */
  readonly sessions?: boolean;
}

/**
 * Declares the route at a path as an OAuth protected resource, whose identifier is PUBLIC_ORIGIN with the path. Throws for a path
 * with more than letters, digits, `_`, `~`, `-` and single slashes.
 *
 * `guard` creates a route like the guard for sessions, which accepts an access token of a user instead, and with `sessions` also.
 * The provider must have issued the token for this resource (RFC 8707) and all `scopes`, which do not apply to a session. Without
 * a valid credential, the response is a 401, without a scope a 403. Both lead a client to `metadata` (`WWW-Authenticate`). Pages
 * of other origins can send an access token, but no cookie. Without PUBLIC_ORIGIN, every access token gets a 401, and `metadata`
 * is a 404.
 */
export function protectedResource(
  path: string,
  { scopes: required, optionalScopes = [], sessions = false }: Options,
) {
  if (!PATH.test(path)) throw new Error(`${path} cannot be the path of a protected resource`);
  const scopes = [...required, ...optionalScopes];

  /** Returns an address of this service. Returns undefined without PUBLIC_ORIGIN. */
  function address(pathname: string): string | undefined {
    const { PUBLIC_ORIGIN } = environment();
    return PUBLIC_ORIGIN && `${PUBLIC_ORIGIN}${pathname}`;
  }

  /** Returns an error whose response has a challenge (RFC 6750, 3, and RFC 9728, 5.1). */
  function challenge(status: 401 | 403, error?: string): HttpError {
    const metadata = address(`${METADATA_PATH}${path.replace(/\/$/, '')}`);
    const parameters = Object.entries({ error, scope: scopes.join(' '), resource_metadata: metadata })
      .filter(([, value]) => value)
      .map(([name, value]) => `${name}="${value}"`);
    return new HttpError(status, status === 401 ? 'Unauthorized' : 'Forbidden', {
      'www-authenticate': `Bearer ${parameters.join(', ')}`.trim(),
    });
  }

  /** Returns why this resource rejects access tokens for these audiences. */
  function problemOf(audiences: readonly string[]): string | undefined {
    const resource = address(path);
    if (resource === undefined) return 'no-public-origin';
    if (audiences.length === 0) return 'no-audience';
    // Two spellings identify an origin: with and without a slash.
    const isOwn = audiences.some((audience) => audience === resource || `${audience}/` === resource);
    return isOwn ? undefined : 'audience';
  }

  /** Returns the verdict of this resource. Throws an HttpError 403 for an access token that lacks a scope. */
  function judge(verdict: Verdict): Verdict {
    const { accessToken, user, reason, isUnchecked, isAccessToken } = verdict;
    if (accessToken) {
      const problem = problemOf(accessToken.audiences);
      if (problem) return { reason: problem };
      if (!required.every((one) => accessToken.scopes.includes(one))) {
        addLogFields({ reason: 'insufficient-scope' });
        throw challenge(403, 'insufficient_scope');
      }
      // Without the issue time of an access token, which does not link a forgotten user again.
      return { user: accessToken.user, actor: accessToken.actor };
    }
    if (isAccessToken) return { reason, isUnchecked };
    return sessions || (user === undefined && !isUnchecked) ? verdict : { reason: 'session' };
  }

  async function contextOf(verdict: Verdict, headers: Headers): Promise<ResourceContext> {
    const judged = hasForeignCookies(verdict, headers) ? { reason: 'foreign-cookie' } : judge(verdict);
    const context = await link.resolveUser(judged);
    if (context === undefined) throw challenge(401, hasBearer(headers) ? 'invalid_token' : undefined);
    const { clientId, scopes: given } = verdict.accessToken ?? {};
    return Object.freeze({ ...context, clientId, scopes: given, actor: judged.actor });
  }

  return {
    guard: <C extends RouteContext>(
      handler: GuardedHandler<ResourceContext, C, NextRequest>,
    ): RouteHandler<C> => withCors(guardBy(contextOf, handler)),
    OPTIONS,
    metadata: {
      GET: withCors(
        route(() => {
          const resource = address(path);
          if (resource === undefined) throw new HttpError(404, 'Not found');
          return json({
            resource,
            authorization_servers: mainProvider.issuer && [mainProvider.issuer()],
            scopes_supported: scopes,
            bearer_methods_supported: ['header'],
          });
        }),
      ),
      OPTIONS,
    },
  };
}

import { type NextFetchEvent, type NextMiddleware, type NextRequest, NextResponse } from 'next/server';
import { describeError } from '../errors/describe-error';
import { rejectWith } from '../http/route';
import { rejectionForServerAction } from '../http/server-action';
import { rateLimitedWarning } from '../log';
import { isApi, isPage, isProxied, type Rejection, rejectionForAddress } from '../routing/paths';
import { writeAuthState } from './auth-state';
import { type Authenticate, authenticator, runSdk, SDK_TIMEOUT_MS } from './authenticate';
import { isForeignParty } from './authorized-party';
import { extractCredential, stripSdkHeaders } from './extract-credential';
import {
  hasHandshakeNonce,
  sanitizePageRequest,
  signedOutRequest,
  withoutHandshake,
} from './sanitize-request';

/**
 * Part of the time limit for the provider's SDK (Clerk's middleware). It is reserved for a second attempt at a page request.
 */
const RETRY_TIMEOUT_MS = 1_000;

/** Paths without sessions: signed webhooks, health checks, and routes of the platform's scheduler. */
const SESSIONLESS = /^\/(?:webhooks|cron|health)\//;
/** Paths where the scheduler sends its own bearer token, which the route checks (docs/users.md). */
const OWN_BEARER = /^\/cron\//;

/**
 * Returns the headers that the route receives. They include the auth state, the result of the SDK's session check. A client
 * cannot forge the auth state.
 */
async function headersForRoute(
  authenticate: Authenticate,
  request: NextRequest,
  event: NextFetchEvent,
  authorizedParties: readonly string[],
): Promise<Headers> {
  const headers = stripSdkHeaders(request.headers);
  const isSessionless = SESSIONLESS.test(request.nextUrl.pathname);
  const { credential, rejectionReason } = isSessionless
    ? { credential: undefined }
    : extractCredential({ method: request.method, headers }, authorizedParties);
  const state = await authenticate(request, event, credential).catch((error: unknown) => {
    // `authenticate` rejects only if the SDK fails even for a request without a credential. Routes without sessions work
    // without the SDK. A guard on such a route finds no auth state and responds with 401.
    if (isSessionless) return undefined;
    throw error;
  });
  // If a client sends this header, Next.js responds with 200 `{}` instead of running the route
  // (https://github.com/vercel/next.js/pull/45772).
  headers.delete('x-middleware-prefetch');
  // The SDK's `auth()` reads the type of the token from this header. A route with sessions must therefore get exactly the token
  // that the SDK's middleware has checked, or no token.
  if (credential?.header === 'authorization') headers.set('authorization', credential.value);
  else if (!OWN_BEARER.test(request.nextUrl.pathname)) headers.delete('authorization');
  if (state) writeAuthState(headers, rejectionReason ? { ...state, reason: rejectionReason } : state);
  return headers;
}

/**
 * Returns true if a response completes a handshake (a redirect that renews a session). Such a response sets a cookie other than
 * the SDK's counter of redirects.
 */
const completesHandshake = ({ headers }: Response): boolean =>
  headers.getSetCookie().some((cookie) => !cookie.startsWith('__clerk_redirect_count='));

/**
 * Returns the SDK's response to a page request.
 *
 * The SDK may start a handshake, which redirects the browser to the provider to renew a session. The provider redirects back,
 * usually with a nonce that the SDK exchanges for cookies. If the SDK fails, exceeds its time limit or gets no cookies for a
 * nonce, this function runs the SDK again without the handshake. If the second run fails too, or if the token was issued for an
 * origin that is not authorized (`foreign-party`), this function runs the SDK without a session. These further runs cannot
 * start a handshake. If they could, a slow Backend API would cause an endless loop of redirects. The SDK would not end the
 * loop, because it counts handshakes in a cookie that expires after 2 s, before a slow redirect has ended.
 */
async function respondToPage(
  sdk: NextMiddleware,
  request: NextRequest,
  event: NextFetchEvent,
  warn: (about: object) => void,
): Promise<Response> {
  const attempt = async (view: NextRequest, milliseconds: number) => {
    try {
      const response = await runSdk(sdk, view, event, milliseconds);
      return isForeignParty(response) ? 'foreign-party' : response;
    } catch (error) {
      warn({ error: describeError(error) });
      return undefined;
    }
  };
  const signedOut = () => runSdk(sdk, signedOutRequest(request), event);

  const response = await attempt(request, SDK_TIMEOUT_MS - RETRY_TIMEOUT_MS);
  if (response === 'foreign-party') return signedOut();
  if (response && (!hasHandshakeNonce(request) || completesHandshake(response))) return response;
  const retried = await attempt(withoutHandshake(request), RETRY_TIMEOUT_MS);
  return retried instanceof Response ? retried : signedOut();
}

/**
 * Removes headers from the SDK's response to a page request. These headers contain the query or describe the session. The SDK
 * passes request headers on with `x-middleware-rewrite`, which contains the address of the page. This function sets
 * `x-middleware-next` instead. With this header, Next.js passes the same request headers on, but the response contains no
 * address.
 */
function withoutInternalHeaders(response: Response): Response {
  const { headers } = response;
  if (headers.has('x-middleware-rewrite')) {
    headers.delete('x-middleware-rewrite');
    headers.set('x-middleware-next', '1');
  }
  for (const part of ['status', 'reason', 'message']) headers.delete(`x-clerk-auth-${part}`);
  return response;
}

/** Next.js sets this header for a request to `/_next/data/…`, an alias of a route, and removes it from all other requests. */
const DATA_ALIAS = 'x-nextjs-data';

/** Content security policy of an API response. It forbids everything if a browser opens the response as a document. */
const API_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export interface MiddlewareOptions {
  /** The SDK's middleware for pages and for proxied requests to the provider's Frontend API. */
  readonly pages: NextMiddleware;
  /** The SDK's middleware for API requests. Only the auth state that it supplies is used. */
  readonly api: NextMiddleware;
  /** Passes a request on to Next.js with these headers. The content security policy of the response allows an HTML document. */
  readonly nextForDocument: (headers: Headers) => NextResponse;
  /** True if this service proxies the provider's Frontend API, as the local stack does. */
  readonly isProxy: () => boolean;
  /** Origins of the frontends whose requests may authenticate with cookies. */
  readonly authorizedParties: () => readonly string[];
}

/** Responds with a rejection in JSON. */
async function reject(request: NextRequest, rejection: Rejection): Promise<Response> {
  return rejectWith(rejection)(request, { params: Promise.resolve({}) });
}

/**
 * Creates the middleware that supplies the provider's auth state to every route.
 *
 * - An address or a method that is not served (lib/routing/paths.ts) gets a 404 or a 405 in JSON, and more than 100 query
 *   parameters get a 400.
 * - A `POST` outside the API has to be a valid server action (lib/http/server-action.ts), unless it is proxied.
 * - For an API request, the SDK gets only the credential, and only the auth state in its response is used. If the SDK does not
 *   check the credential within 4 s, the request continues without a session.
 * - For a page, the SDK may redirect the browser to renew a session, but only to the provider's host.
 * - Only a proxied request to the provider's Frontend API reaches the SDK unchanged.
 */
export function authenticationMiddleware({
  pages,
  api,
  nextForDocument,
  isProxy,
  authorizedParties,
}: MiddlewareOptions): NextMiddleware {
  const warn = rateLimitedWarning('credential not verified');
  const authenticate = authenticator(api, warn);
  return async (request: NextRequest, event: NextFetchEvent) => {
    const { method, nextUrl, headers } = request;
    const { pathname } = nextUrl;
    const rejection = rejectionForAddress({
      method,
      pathname: headers.has(DATA_ALIAS) ? `/_next/data${pathname}` : pathname,
      query: nextUrl.search.slice(1),
      header: (name) => headers.get(name),
      hasProxy: isProxy(),
    });
    if (rejection) return reject(request, rejection);
    if (isProxied(pathname)) return pages(request, event);
    const isAction = method === 'POST' && !isApi(pathname);
    const actionRejection = isAction && (await rejectionForServerAction(request));
    if (actionRejection) return reject(request, actionRejection);
    if (isPage(pathname)) {
      const page = sanitizePageRequest(request);
      // A handshake would redirect the browser, with the body of the action, to the provider.
      const response = await respondToPage(pages, isAction ? withoutHandshake(page) : page, event, warn);
      return withoutInternalHeaders(response);
    }
    const routeHeaders = await headersForRoute(authenticate, request, event, authorizedParties());
    if (!isApi(pathname)) return nextForDocument(routeHeaders);
    return NextResponse.next({
      request: { headers: routeHeaders },
      headers: { 'content-security-policy': API_POLICY },
    });
  };
}

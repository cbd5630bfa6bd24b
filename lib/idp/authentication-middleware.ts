import { type NextFetchEvent, type NextMiddleware, type NextRequest, NextResponse } from 'next/server';
import { withTimeout } from '../concurrency/with-timeout';
import { describeError } from '../errors/describe-error';
import { passForData } from '../http/content-security-policy';
import { rejectWith } from '../http/route';
import { rateLimitedWarning } from '../log';
import { isApi, isPage, isProxied } from '../routing/paths';
import { postNotAllowed, type Rejection, rejectionForAddress } from '../routing/rejection-for-address';
import {
  type AuthState,
  authStateMemory,
  readSdkAuthState,
  sdkReasonOf,
  setAuthState,
  suppliedSessionUser,
} from './auth-state';
import { isForeignParty } from './authorized-party';
import { type Credential, extractCredential } from './extract-credential';
import {
  hasHandshakeNonce,
  isSdkAction,
  sanitizeApiRequest,
  sanitizePageRequest,
  signedOutRequest,
  stripSdkHeaders,
  withoutHandshake,
} from './sanitize-request';
import { keepSessionUser } from './verified-sessions';

/** The SDK calls the provider to complete a handshake by nonce, and for its keys if IDP_JWT_KEY is not set. */
const DEADLINE_MS = 4_000;
/** Part of the deadline that is left for the second attempt for a page. */
const RETRY_DEADLINE_MS = 1_000;

async function answerOf(
  sdk: NextMiddleware,
  request: NextRequest,
  event: NextFetchEvent,
  milliseconds = DEADLINE_MS,
): Promise<Response> {
  return (await withTimeout(milliseconds, Promise.resolve(sdk(request, event)))) ?? NextResponse.next();
}

type AuthStateOf = (
  request: NextRequest,
  event: NextFetchEvent,
  credential: Credential,
) => Promise<AuthState>;

/** Makes the SDK's middleware tell the auth state of API requests; a credential that it fails over is none. */
function authStates(sdk: NextMiddleware, warn: (about: object) => void): AuthStateOf {
  const memory = authStateMemory();
  return async function authState(request, event, credential): Promise<AuthState> {
    const remembered = memory.recall(credential);
    if (remembered) return remembered;
    try {
      const answer = await answerOf(sdk, sanitizeApiRequest(request, credential), event);
      const supplied = readSdkAuthState(answer);
      if (supplied === undefined) throw new Error('The SDK supplied no auth state');
      const state: AuthState = credential ? supplied : { ...supplied, reason: 'no-credential' };
      memory.remember(credential, state);
      if (credential === undefined) return state;
      const user = suppliedSessionUser(answer);
      if (user !== undefined) {
        // As the route sees it, in `headersForRoute`.
        const authorization = credential.header === 'authorization' ? credential.value : null;
        keepSessionUser(state, authorization, user);
      }
      if (state.reason === 'not-verified') warn({ reason: sdkReasonOf(answer) });
      return state;
    } catch (error) {
      if (credential === undefined) throw error;
      warn({ error: describeError(error) });
      return { ...(await authState(request, event, undefined)), reason: 'not-verified' };
    }
  };
}

/** What comes signed, from the platform's scheduler, or to ask for our health needs no session: none is looked for. */
const SESSIONLESS = /^\/(?:webhooks|cron|health)\//;
/** A scheduler brings a bearer of its own, which the route judges (docs/users.md). */
const OWN_BEARER = /^\/cron\//;

/** The headers with which a request goes on: with its auth state, which no header of its own can forge. */
async function headersForRoute(
  authState: AuthStateOf,
  request: NextRequest,
  event: NextFetchEvent,
  authorizedParties: readonly string[],
): Promise<Headers> {
  const headers = stripSdkHeaders(request.headers);
  const isSessionless = SESSIONLESS.test(request.nextUrl.pathname);
  const { credential, refused } = isSessionless
    ? { credential: undefined, refused: undefined }
    : extractCredential({ method: request.method, headers }, authorizedParties);
  const state = await authState(request, event, credential).catch((error: unknown) => {
    // Webhooks and health checks work without the SDK: a guard on these paths finds no auth state, which is a 401.
    if (isSessionless) return undefined;
    throw error;
  });
  // With it Next.js answers 200 `{}` in the route's place (https://github.com/vercel/next.js/pull/45772).
  headers.delete('x-middleware-prefetch');
  // `auth()` looks at it again: it shall find what the state is about.
  if (credential?.header === 'authorization') headers.set('authorization', credential.value);
  else if (!OWN_BEARER.test(request.nextUrl.pathname)) headers.delete('authorization');
  if (state) setAuthState(headers, refused ? { ...state, reason: refused } : state);
  return headers;
}

/** Returns true if a response sets the cookies of a handshake. The count of redirects is not one of them. */
const completesHandshake = ({ headers }: Response): boolean =>
  headers.getSetCookie().some((cookie) => !cookie.startsWith('__clerk_redirect_count='));

/**
 * Returns the SDK's response to a page request. If the SDK fails, exceeds its deadline or gets no cookies for a nonce, the
 * page is served by the session cookies alone, and without those if they fail too. No second handshake starts then. The
 * SDK counts handshakes for 2 s only, so a slow Backend API would cause an endless loop of redirects.
 */
async function pageState(
  sdk: NextMiddleware,
  request: NextRequest,
  event: NextFetchEvent,
  warn: (about: object) => void,
): Promise<Response> {
  const attempt = async (view: NextRequest, milliseconds: number) => {
    try {
      const response = await answerOf(sdk, view, event, milliseconds);
      return isForeignParty(response) ? 'foreign-party' : response;
    } catch (error) {
      warn({ error: describeError(error) });
      return undefined;
    }
  };
  const signedOut = () => answerOf(sdk, signedOutRequest(request), event);

  const response = await attempt(request, DEADLINE_MS - RETRY_DEADLINE_MS);
  if (response === 'foreign-party') return signedOut();
  if (response && (!hasHandshakeNonce(request) || completesHandshake(response))) return response;
  const retried = await attempt(withoutHandshake(request), RETRY_DEADLINE_MS);
  return retried instanceof Response ? retried : signedOut();
}

/**
 * Removes the headers from the SDK's response to a page request that repeat the request's query or describe its session.
 * The SDK rewrites each page to its own address, only to pass request headers on: without the rewrite, Next.js continues
 * with the same headers.
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

/** Next.js sets it where an address was `/_next/data/…`, which it takes for an alias of the route; of a caller it drops it. */
const DATA_ALIAS = 'x-nextjs-data';

/** What the shield stands in front of. */
export interface Shielded {
  /** The SDK's middleware for pages, and for its own traffic where it runs a proxy. */
  readonly pages: NextMiddleware;
  /** The SDK's middleware for every other path: it is asked for the auth state only. */
  readonly api: NextMiddleware;
  /** Lets a request pass whose answer may be a document. */
  readonly passForDocument: (headers: Headers) => NextResponse;
  readonly isProxy: () => boolean;
  /** Origins of the frontends whose cookies count, beside our own. */
  readonly authorizedParties: () => readonly string[];
}

/** Responds with a rejection in JSON instead of a route. */
async function reject(request: NextRequest, rejection: Rejection): Promise<Response> {
  return rejectWith(rejection)(request, { params: Promise.resolve({}) });
}

/**
 * Runs the SDK's middleware so that of an API request it says only whose session it is: no redirect, no page, no
 * failure and no header that tells why a credential was refused. It ends within 4 s, then as for a request without
 * credential. What is not served (lib/routing/paths.ts) is a 404 or a 405 in JSON. On a page the SDK may redirect to renew a
 * session, to no other host than its own. Only where it proxies its Frontend API does it see a request as it came.
 */
export function shield({
  pages,
  api,
  passForDocument,
  isProxy,
  authorizedParties,
}: Shielded): NextMiddleware {
  const warn = rateLimitedWarning('credential not verified');
  const authState = authStates(api, warn);
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
    if (method === 'POST' && !isApi(pathname) && !(await isSdkAction(request))) {
      return reject(request, postNotAllowed(pathname));
    }
    if (isPage(pathname)) {
      return withoutInternalHeaders(await pageState(pages, sanitizePageRequest(request), event, warn));
    }
    const passed = await headersForRoute(authState, request, event, authorizedParties());
    return isApi(pathname) ? passForData(passed) : passForDocument(passed);
  };
}

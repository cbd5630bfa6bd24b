import { type NextFetchEvent, type NextMiddleware, type NextRequest, NextResponse } from 'next/server';
import { notFound } from '../http';
import { describeError, log } from '../log';
import { isApi, isPage } from '../paths';
import { within } from '../within';
import { type AuthState, authStateMemory, setAuthState, suppliedAuthState } from './auth-state';
import { passForData } from './content-security-policy';
import { type Credential, credentialOf } from './credential';
import {
  withCredentialOnly,
  withoutCredentials,
  withoutForeignControls,
  withoutSdkHeaders,
} from './sdk-controls';

/** The same-origin way to the Frontend API: the SDK's own traffic, where it runs a proxy. */
const PROXY = /^\/__clerk(?:\/|$)/;

/** A letter, digit, `-`, `.`, `_` or `~`, percent-encoded without need. */
const NEEDLESSLY_ENCODED = /%(?:2[de]|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/i;

/** True if the path is not spelled as a route's address is, or not decodable at all. */
function isOddlySpelled(pathname: string): boolean {
  try {
    decodeURIComponent(pathname);
    return NEEDLESSLY_ENCODED.test(pathname);
  } catch {
    return true;
  }
}

/** The SDK fetches the provider's keys without a time-out when IDP_JWT_KEY is not set. */
const DEADLINE_MS = 4_000;

async function answerOf(sdk: NextMiddleware, request: NextRequest, event: NextFetchEvent): Promise<Response> {
  return (await within(DEADLINE_MS, Promise.resolve(sdk(request, event)))) ?? NextResponse.next();
}

type AuthStateOf = (
  request: NextRequest,
  event: NextFetchEvent,
  credential: Credential,
) => Promise<AuthState>;

/** Makes the SDK's middleware tell the auth state of API requests; a credential that it fails over is none. */
function authStates(sdk: NextMiddleware): AuthStateOf {
  const memory = authStateMemory();
  return async function authState(request, event, credential) {
    const remembered = memory.recall(credential);
    if (remembered) return remembered;
    try {
      const supplied = suppliedAuthState(await answerOf(sdk, withCredentialOnly(request, credential), event));
      if (supplied === undefined) throw new Error('The SDK supplied no auth state');
      memory.remember(credential, supplied);
      return supplied;
    } catch (error) {
      if (credential === undefined) throw error;
      log.warn({ error: describeError(error) }, 'credential not verified');
      return authState(request, event, undefined);
    }
  };
}

/** What comes signed needs no session. */
const SIGNED = /^\/webhooks\//;

/** The headers with which a request goes on: with its auth state, which no header of its own can forge. */
async function headersForRoute(
  authState: AuthStateOf,
  request: NextRequest,
  event: NextFetchEvent,
): Promise<Headers> {
  const credential = SIGNED.test(request.nextUrl.pathname) ? undefined : credentialOf(request.headers);
  const state = await authState(request, event, credential);
  const headers = withoutSdkHeaders(request.headers);
  // With it Next.js answers 200 `{}` in the route's place.
  headers.delete('x-middleware-prefetch');
  // `auth()` looks at it again: it shall find what the state is about.
  if (credential?.header === 'authorization') headers.set('authorization', credential.value);
  else headers.delete('authorization');
  setAuthState(headers, state);
  return headers;
}

/** The SDK's answer to a page request; where it fails over a parameter or takes too long, the page without that. */
async function pageState(
  sdk: NextMiddleware,
  request: NextRequest,
  event: NextFetchEvent,
): Promise<Response> {
  try {
    return await answerOf(sdk, request, event);
  } catch (error) {
    log.warn({ error: describeError(error) }, 'credential not verified');
    const { pathname, search } = request.nextUrl;
    if (search !== '') return NextResponse.redirect(new URL(pathname, request.url));
    return answerOf(sdk, withoutCredentials(request), event);
  }
}

/** What the shield stands in front of. */
export interface Shielded {
  /** The SDK's middleware for pages, and for its own traffic where it runs a proxy. */
  readonly pages: NextMiddleware;
  /** The SDK's middleware for every other path: it is asked for the auth state only. */
  readonly api: NextMiddleware;
  /** Lets a request pass whose answer may be a document. */
  readonly passForDocument: (headers: Headers) => NextResponse;
  readonly isProxy: () => boolean;
}

/**
 * Runs the SDK's middleware so that of an API request it says only whose session it is: no redirect, no page, no
 * failure and no header that tells why a credential was refused. It ends within 4 s, then as for a request without
 * credential. An oddly spelled path names nothing (404). On a page the SDK may redirect to renew a session, to no other
 * host than its own. Only where it proxies its Frontend API does it see a request as it came.
 */
export function shield({ pages, api, passForDocument, isProxy }: Shielded): NextMiddleware {
  const authState = authStates(api);
  return async (request: NextRequest, event: NextFetchEvent) => {
    const { pathname } = request.nextUrl;
    if (PROXY.test(pathname) && isProxy()) return pages(request, event);
    if (isPage(pathname)) return pageState(pages, withoutForeignControls(request), event);
    // Next.js itself fails over a path that it cannot decode.
    if (isOddlySpelled(pathname)) {
      return notFound(request, { params: Promise.resolve({ path: pathname.split('/').slice(1) }) });
    }
    const headers = await headersForRoute(authState, request, event);
    return isApi(pathname) ? passForData(headers) : passForDocument(headers);
  };
}

import { TimeoutStrategy, timeout } from 'cockatiel';
import { type NextFetchEvent, type NextMiddleware, type NextRequest, NextResponse } from 'next/server';
import { notFound } from '../http';
import { describeError, log } from '../log';
import { withoutCredentials, withoutForeignControls, withoutSdkControls } from './sdk-controls';

/** Where a person's browser navigates to. Every other path is an API path, so a new one is shielded at once. */
const PAGE = /^\/(?:$|(?:sign-in|sign-up)(?:\/|$)|account\/?$)/;

/** The same-origin way to the Frontend API: the SDK's own traffic, where it runs a proxy. */
const PROXY = /^\/__clerk(?:\/|$)/;

/** True if the path is a page, where the identity provider may redirect a browser to renew its session. */
export function isPage(pathname: string): boolean {
  return PAGE.test(pathname);
}

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

const SDK_RESPONSE_HEADERS = ['x-clerk-auth-status', 'x-clerk-auth-reason', 'x-clerk-auth-message'];

/** The SDK fetches the provider's keys without a time-out when IDP_JWT_KEY is not set. */
const deadline = timeout(4_000, TimeoutStrategy.Aggressive);

async function answerOf(sdk: NextMiddleware, request: NextRequest, event: NextFetchEvent): Promise<Response> {
  return (await deadline.execute(() => sdk(request, event))) ?? NextResponse.next();
}

/** The auth state of a request, as the SDK's instructions to Next.js to go on; a credential it fails over is none. */
async function authState(
  sdk: NextMiddleware,
  request: NextRequest,
  event: NextFetchEvent,
): Promise<Response> {
  try {
    const response = await answerOf(sdk, request, event);
    if (!response.headers.has('location')) return response;
  } catch (error) {
    log.warn({ error: describeError(error) }, 'credential not verified');
  }
  return answerOf(sdk, withoutCredentials(request), event);
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

/**
 * Runs the SDK's middleware so that on an API path its answer is only ever an auth state: no redirect, no page, no
 * failure and no header that tells why a credential was refused. It ends within 4 s, then as for a request without
 * credential. An oddly spelled path names nothing (404). On a page the SDK may redirect to renew a session, to no other
 * host than its own. Only where it proxies its Frontend API does it see a request as it came.
 */
export function shield(sdk: NextMiddleware, { isProxy }: { isProxy: () => boolean }): NextMiddleware {
  return async (request: NextRequest, event: NextFetchEvent) => {
    const { pathname } = request.nextUrl;
    if (PROXY.test(pathname) && isProxy()) return sdk(request, event);
    if (isPage(pathname)) return pageState(sdk, withoutForeignControls(request), event);
    // Next.js itself fails over a path that it cannot decode.
    if (isOddlySpelled(pathname)) {
      return notFound(request, { params: Promise.resolve({ path: pathname.split('/').slice(1) }) });
    }
    const response = await authState(sdk, withoutSdkControls(request), event);
    const shielded = new NextResponse(response.body, response);
    for (const name of SDK_RESPONSE_HEADERS) shielded.headers.delete(name);
    return shielded;
  };
}

import { type NextFetchEvent, type NextMiddleware, NextRequest, NextResponse } from 'next/server';
import { describeError } from '../base/errors';
import { withTimeout } from '../core/async';
import type { Verdict } from '../core/verdict';
import { type AskProviders, cookieHeader, otherCookies } from '../http/credential';
import { pageAddress, pageHeaders, unavailablePage } from '../http/page';
import { readVerdict, signVerdict, VERDICT } from '../http/signed-verdict';
import { cancelRewrite, passedHeader, passHeader } from '../next/middleware-headers';
import { completeHandshake, findHandshake, warn, withoutParameters } from './handshake';
import {
  HANDSHAKE,
  NO_REDIRECT,
  NONCE,
  REASON_HEADER,
  REDIRECT_PARAMETER,
  RENEWAL_COOKIE,
  REPORT_HEADERS,
  usableCookies,
} from './sdk-formats';
import { clerkEnvironment } from './variables';
import { rejectedVerdict } from './verdict';

/** Time limit of a verification or a handshake that needs the provider. */
const PROVIDER_MS = 3_000;

/**
 * Copies a page request without the parts with which the SDK would send the session to another host, print text of the client,
 * or call the provider with the secret key.
 */
function sanitize(request: NextRequest): NextRequest {
  const url = pageAddress(request);
  for (const name of [REDIRECT_PARAMETER, NONCE, HANDSHAKE]) url.searchParams.delete(name);
  const headers = pageHeaders(request, withoutParameters(url));
  const cookies = usableCookies(headers).filter(({ name }) => !RENEWAL_COOKIE.test(name));
  headers.set('cookie', cookieHeader(cookies));
  // A redirect would send the body of a server action to the provider.
  if (request.method === 'POST') headers.set(...NO_REDIRECT);
  return new NextRequest(url, { headers, method: request.method });
}

/** Returns a copy of a sanitized request for which the SDK neither calls the provider nor redirects. */
function withoutSession(request: NextRequest): NextRequest {
  const headers = new Headers(request.headers);
  headers.delete('cookie');
  headers.set(...NO_REDIRECT);
  const { origin, pathname } = request.nextUrl;
  return new NextRequest(new URL(pathname, origin), { headers, method: request.method });
}

/** Asks other providers about the cookies of a page request, unless the SDK has found a session or redirects the browser. */
async function otherVerdict(page: Response, request: NextRequest, askProviders?: AskProviders) {
  const passed = passedHeader(page, VERDICT);
  if (!askProviders || passed === null || readVerdict({ get: () => passed }).user !== undefined)
    return undefined;
  const credential = otherCookies(request.headers);
  return credential && askProviders(credential, request.nextUrl);
}

/**
 * Returns the response of the SDK's middleware to a page request, which may redirect the browser to the provider to renew the
 * session (a handshake). If the SDK or the exchange of a nonce fails, the page is served without a session, because a second
 * handshake could redirect the browser forever.
 *
 * If the session could not be checked, the response is a 503 that shows app/unavailable, unless the page needs no session. For a
 * server action, it is undefined. With IDP_JWT_KEY, only a handshake waits for the provider.
 *
 * If the SDK has found no session and does not redirect the browser, other providers decide by the cookies.
 */
export async function pageResponse(
  sdk: NextMiddleware,
  given: NextRequest,
  event: NextFetchEvent,
  askProviders?: AskProviders,
): Promise<Response | undefined> {
  const request = sanitize(given);
  const handshake = findHandshake(given);
  const working = handshake
    ? completeHandshake(sdk, request, event, handshake)
    : Promise.resolve(sdk(request, event));
  const waitsForProvider = handshake || clerkEnvironment().IDP_JWT_KEY === undefined;
  let isUnchecked = false;
  const response = await (waitsForProvider ? withTimeout(PROVIDER_MS, working) : working).catch((error) => {
    isUnchecked = error.name === 'TimeoutError';
    warn({ error: describeError(error) });
  });
  const reason = response?.headers.get(REASON_HEADER);
  isUnchecked ||= Boolean(reason && rejectedVerdict(reason).isUnchecked);
  const page =
    (isUnchecked ? undefined : response) ??
    (await sdk(withoutSession(request), event)) ??
    NextResponse.next();
  for (const name of REPORT_HEADERS) page.headers.delete(name);
  cancelRewrite(page);
  const verdict: Verdict | undefined = isUnchecked
    ? { reason: reason || 'not-verified', isUnchecked }
    : await otherVerdict(page, request, askProviders);
  if (verdict) passHeader(page, VERDICT, signVerdict(verdict));
  return verdict?.isUnchecked ? unavailablePage(page, request) : page;
}

import { type NextFetchEvent, type NextMiddleware, NextRequest, NextResponse } from 'next/server';

/** Where a person's browser navigates to. Every other path is an API path, so a new one is shielded at once. */
const PAGE = /^\/(?:$|(?:sign-in|sign-up)(?:\/|$)|account$|__clerk(?:\/|$))/;

/** True if the path is a page, where the identity provider may redirect a browser to renew its session. */
export function isPage(pathname: string): boolean {
  return PAGE.test(pathname);
}

const MACHINE_TOKEN = /^(?:Bearer +)?(?:ak|mt|oat)_/i;
const SDK_COOKIE = /^__(?:clerk_handshake|clerk_redirect_count|refresh)/;
const SDK_RESPONSE_HEADERS = ['x-clerk-auth-status', 'x-clerk-auth-reason', 'x-clerk-auth-message'];

/**
 * What the SDK may see of an API request: the session token, by header or cookie, and nothing that makes it answer
 * in our place. A request with `Accept: text/html` would be redirected, `__clerk_*` parameters redirect or fail,
 * and machine tokens or refresh cookies cause a call to the provider with our secret key.
 */
function withoutSdkControls(request: NextRequest): NextRequest {
  const url = new URL(request.url);
  for (const name of [...url.searchParams.keys()]) {
    if (name.startsWith('__clerk_')) url.searchParams.delete(name);
  }
  const headers = new Headers(request.headers);
  headers.set('sec-fetch-dest', 'empty');
  const cookies = (headers.get('cookie') ?? '').split(/; */).filter((cookie) => !SDK_COOKIE.test(cookie));
  headers.set('cookie', cookies.join('; '));
  // Not deleted: a session cookie must not stand in for a bearer that the caller chose to send.
  if (MACHINE_TOKEN.test(headers.get('authorization') ?? '')) headers.set('authorization', 'Bearer refused');
  return new NextRequest(url, { headers, method: request.method });
}

/**
 * Runs the SDK's middleware so that on an API path its answer is only ever an auth state: no redirect, no page, no
 * failure and no header that tells why a credential was refused. Pages get the SDK's middleware as it is.
 */
export function shield(middleware: NextMiddleware): NextMiddleware {
  return async (request: NextRequest, event: NextFetchEvent) => {
    if (isPage(request.nextUrl.pathname)) return middleware(request, event);
    const response = (await middleware(withoutSdkControls(request), event)) ?? NextResponse.next();
    const shielded = new NextResponse(response.body, response);
    for (const name of SDK_RESPONSE_HEADERS) shielded.headers.delete(name);
    return shielded;
  };
}

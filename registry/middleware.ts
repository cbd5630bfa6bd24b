import { type ClerkMiddlewareAuth, type ClerkMiddlewareOptions, clerkMiddleware } from '@clerk/nextjs/server';
import { type NextFetchEvent, type NextMiddleware, NextRequest } from 'next/server';
import { cookieHeader, extractCredential, parseCookies } from './idp/credential';

type Handler = (
  auth: ClerkMiddlewareAuth,
  request: NextRequest,
  event: NextFetchEvent,
) => ReturnType<NextMiddleware>;
type Options =
  | ClerkMiddlewareOptions
  | ((request: NextRequest) => ClerkMiddlewareOptions | Promise<ClerkMiddlewareOptions>);

/** The routes of identity-link, with or without a slash at the end. They reject requests themselves, in JSON. */
const ROUTES = /^\/(?:auth\/v1\/register|webhooks\/idp\/v1\/user-created)\/?$/;
/** Names of the query parameters and cookies with which Clerk sends a browser back. */
const HANDSHAKE = /^__clerk_handshake/;

/** Returns true if the SDK may redirect the browser to Clerk (a handshake). This is the SDK's own rule. */
function isNavigation(method: string, headers: Headers): boolean {
  const destination = headers.get('sec-fetch-dest');
  if (method !== 'GET') return false;
  if (destination) return /^(?:document|iframe)$/.test(destination);
  return headers.get('accept')?.startsWith('text/html') ?? false;
}

/**
 * Copies a request for the SDK, which would respond itself to a handshake that it cannot complete. Writes each spelling of a
 * bearer token as `Bearer`. Drops a handshake, except from the navigation of a browser to a page.
 */
function requestForSdk(request: NextRequest): NextRequest {
  const [url, headers] = [new URL(request.url), new Headers(request.headers)];
  const credential = extractCredential(request.method, headers, []);
  if (typeof credential !== 'string' && credential.header === 'authorization')
    headers.set('authorization', credential.value);
  if (ROUTES.test(request.nextUrl.pathname)) headers.set('sec-fetch-dest', 'empty');
  if (!isNavigation(request.method, headers)) {
    for (const name of [...url.searchParams.keys()]) if (HANDSHAKE.test(name)) url.searchParams.delete(name);
    const cookies = parseCookies(headers).filter(({ name }) => !HANDSHAKE.test(name));
    if (headers.has('cookie')) headers.set('cookie', cookieHeader(cookies));
  }
  const { basePath } = request.nextUrl;
  return new NextRequest(new Request(url, request), { headers, nextConfig: { basePath } });
}

/**
 * Replaces `clerkMiddleware` and takes the same arguments. Accepts each spelling of a bearer token, verifies sessions with
 * CLERK_JWT_KEY if it is set, and does not call your handler for the routes of identity-link.
 */
export function withIdentityLink(
  first: Handler | ClerkMiddlewareOptions = {},
  second: Options = {},
): NextMiddleware {
  const [handler, options] = typeof first === 'function' ? [first, second] : [undefined, first];
  // In environment files of containers, a line break is often the two characters `\n`.
  const jwtKey = process.env['CLERK_JWT_KEY']?.replaceAll('\\n', '\n');
  const middleware = clerkMiddleware(
    (auth, request, event) =>
      ROUTES.test(request.nextUrl.pathname) ? undefined : handler?.(auth, request, event),
    async (request) => ({
      ...(jwtKey ? { jwtKey } : {}),
      ...(typeof options === 'function' ? await options(request) : options),
    }),
  );
  return (request, event) => middleware(requestForSdk(request), event);
}

import { type ClerkMiddlewareAuth, type ClerkMiddlewareOptions, clerkMiddleware } from '@clerk/nextjs/server';
import { type NextFetchEvent, type NextMiddleware, NextRequest } from 'next/server';
import { extractCredential } from './idp/credential';

type Handler = (
  auth: ClerkMiddlewareAuth,
  request: NextRequest,
  event: NextFetchEvent,
) => ReturnType<NextMiddleware>;

/** The routes of identity-link, with or without a slash at the end. They reject requests themselves, in JSON. */
const ROUTES = /^\/(?:auth\/v1\/register|webhooks\/idp\/v1\/user-created)\/?$/;

/**
 * Replaces `clerkMiddleware` and takes the same handler and options. Accepts each spelling of a bearer token, verifies sessions
 * with CLERK_JWT_KEY if it is set, and does not call your handler for the routes of identity-link.
 */
export function withIdentityLink(handler?: Handler, options?: ClerkMiddlewareOptions): NextMiddleware {
  // In environment files of containers, a line break is often the two characters `\n`.
  const jwtKey = process.env['CLERK_JWT_KEY']?.replaceAll('\\n', '\n');
  const middleware = clerkMiddleware(
    (auth, request, event) =>
      ROUTES.test(request.nextUrl.pathname) ? undefined : handler?.(auth, request, event),
    { ...(jwtKey ? { jwtKey } : {}), ...options },
  );
  return (request, event) => {
    const credential = extractCredential(request.method, request.headers, []);
    if (typeof credential === 'string' || credential.header !== 'authorization')
      return middleware(request, event);
    const headers = new Headers(request.headers);
    headers.set('authorization', credential.value);
    return middleware(new NextRequest(request, { headers }), event);
  };
}

import { type ClerkMiddlewareAuth, type ClerkMiddlewareOptions, clerkMiddleware } from '@clerk/nextjs/server';
import type { NextFetchEvent, NextMiddleware, NextRequest } from 'next/server';

type Handler = (
  auth: ClerkMiddlewareAuth,
  request: NextRequest,
  event: NextFetchEvent,
) => ReturnType<NextMiddleware>;

/** Routes that identity-link adds. They themselves reject requests without a session or a signature, in JSON. */
const ROUTES: readonly string[] = ['/auth/v1/register', '/webhooks/idp/v1/user-created'];

/**
 * Replaces `clerkMiddleware` and takes the same arguments. Verifies sessions with CLERK_JWT_KEY, which `clerkMiddleware` does
 * not read. Does not call your handler for `ROUTES`, so that `auth.protect()` cannot reject requests to these routes.
 */
export function withIdentityLink(handler?: Handler, options?: ClerkMiddlewareOptions): NextMiddleware {
  const jwtKey = process.env['CLERK_JWT_KEY'];
  return clerkMiddleware(
    (auth, request, event) =>
      ROUTES.includes(request.nextUrl.pathname) ? undefined : handler?.(auth, request, event),
    { ...(jwtKey ? { jwtKey } : {}), ...options },
  );
}

import { environment } from './lib/env';
import { nextForDocument } from './lib/http/content-security-policy';
import { nextWithVerdict } from './lib/idp/auth-state';
import { authenticationMiddleware } from './lib/idp/authentication-middleware';
import { foreignParty, namesForeignParty } from './lib/idp/authorized-party';
import { clerkMiddleware } from './lib/idp/server';
import { sessionUserOf } from './lib/idp/session-user';

/** Returns true if the service proxies the provider's Frontend API. Only the local stack (`npm run dev`) does so. */
const isProxy = () => environment().CLERK_FAPI_URL !== undefined;

function options() {
  const { IDP_PUBLISHABLE_KEY, IDP_JWT_KEY } = environment();
  return {
    // Without this option, the SDK reads NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY. Next.js can inline that variable at build time, and
    // a key that is set later has no effect.
    publishableKey: IDP_PUBLISHABLE_KEY.key,
    ...(IDP_JWT_KEY ? { jwtKey: IDP_JWT_KEY } : {}),
    telemetry: { disabled: true },
  };
}

/**
 * Options for pages. They omit `authorizedParties`, the origins that may send session tokens. With that option, the SDK would
 * also reject a token without an origin (`azp`). The handler for pages below rejects a token only if the token names an origin
 * that is not authorized.
 */
const pageOptions = () => ({ ...options(), ...(isProxy() ? { frontendApiProxy: { enabled: true } } : {}) });

function apiOptions() {
  const { IDP_AUTHORIZED_PARTIES } = environment();
  return { ...options(), ...(IDP_AUTHORIZED_PARTIES ? { authorizedParties: IDP_AUTHORIZED_PARTIES } : {}) };
}

/** Continues a request, and adds the Content-Security-Policy to its response. */
const nextWithPolicy = (headers: Headers) =>
  nextForDocument(headers, {
    frontendApi: environment().IDP_PUBLISHABLE_KEY.frontendApi,
    sameOrigin: isProxy(),
    development: process.env.NODE_ENV === 'development',
  });

/**
 * Passes the auth state to every route (docs/contract.md, 5.1). The auth state is the result of the SDK's session check. The
 * guard of a route rejects requests without a session.
 */
export default authenticationMiddleware({
  pages: clerkMiddleware(async (auth, request) => {
    // A page may accept pending sessions, whose users have not completed all required steps. Their tokens are checked too.
    const { sessionClaims } = await auth({ treatPendingAsSignedOut: false });
    return namesForeignParty(sessionClaims?.azp, environment().IDP_AUTHORIZED_PARTIES)
      ? foreignParty()
      : nextWithPolicy(request.headers);
  }, pageOptions),
  api: clerkMiddleware(async (auth) => nextWithVerdict(sessionUserOf(await auth())), apiOptions),
  nextForDocument: nextWithPolicy,
  isProxy,
  authorizedParties: () => environment().IDP_AUTHORIZED_PARTIES ?? [],
});

// Excludes only static files. On a path without the middleware, the SDK's `auth()` would trust headers of the client.
export const config = { runtime: 'nodejs', matcher: ['/((?!_next/static/).*)'] };

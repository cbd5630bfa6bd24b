import '#lib/clerk/sdk-environment';
import { clerkMiddleware } from '@clerk/nextjs/server';
import { environment } from '#lib/base/env';
import { authenticator, passVerdict } from '#lib/clerk/api-session';
import { documentHosts } from '#lib/clerk/browser-settings';
import { pageResponse } from '#lib/clerk/page-session';
import { clerkEnvironment } from '#lib/clerk/variables';
import { verdictOf } from '#lib/clerk/verdict';
import { nextForDocument } from '#lib/http/page';
import { signVerdict, VERDICT } from '#lib/http/signed-verdict';
import { createMiddleware } from '#lib/middleware';
import { providers } from '#providers';

/** Returns true if the service proxies the provider's Frontend API. Only the local stack (`npm run dev`) does so. */
const isProxy = () => clerkEnvironment().CLERK_FAPI_URL !== undefined;

function options() {
  const { IDP_PUBLISHABLE_KEY, IDP_JWT_KEY } = clerkEnvironment();
  // Next.js can inline NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY at build time, so the key is an option.
  const keys = { publishableKey: IDP_PUBLISHABLE_KEY.key, telemetry: { disabled: true } };
  return IDP_JWT_KEY ? { ...keys, jwtKey: IDP_JWT_KEY } : keys;
}

/** Verifies the session of an API request. With authorized parties, the SDK also rejects a token without an origin (`azp`). */
const api = clerkMiddleware(
  async (auth) => passVerdict(verdictOf(await auth())),
  () => {
    const { IDP_AUTHORIZED_PARTIES: authorizedParties } = environment();
    return authorizedParties ? { ...options(), authorizedParties } : options();
  },
);

/** Verifies the session of a page, which accepts a token without an origin, but not a token for a foreign origin. */
const pages = clerkMiddleware(
  async (auth, request) => {
    const { IDP_AUTHORIZED_PARTIES: parties } = environment();
    // The page may accept a pending session, so its origin is checked too.
    const { sessionClaims } = await auth({ treatPendingAsSignedOut: false });
    if (parties && sessionClaims?.azp !== undefined && !parties.includes(sessionClaims.azp))
      throw new Error('The token names a foreign origin');
    const headers = new Headers(request.headers);
    headers.set(VERDICT, signVerdict(verdictOf(await auth())));
    return nextForDocument(headers, documentHosts());
  },
  () => (isProxy() ? { ...options(), frontendApiProxy: { enabled: true } } : options()),
);

export default createMiddleware(providers, (askProviders) => ({
  api: authenticator(api, askProviders),
  page: (request, event) => pageResponse(pages, request, event, askProviders),
  proxy: (request, event) =>
    isProxy() && request.nextUrl.pathname.startsWith('/__clerk/') ? pages(request, event) : undefined,
}));

// Excludes only static files. On a path without the middleware, the SDK's `auth()` would trust headers of the client. The
// default runtime (Edge) lacks node:crypto. Next.js 16 runs this file, and prefers the name proxy.ts.
export const config = { runtime: 'nodejs', matcher: ['/((?!_next/static/).*)'] };

import '#lib/clerk/sdk-environment';
import { clerkMiddleware } from '@clerk/nextjs/server';
import { type NextMiddleware, type NextRequest, NextResponse } from 'next/server';
import { environment } from '#lib/base/env';
import { authenticator, passVerdict } from '#lib/clerk/api-session';
import { pageResponse } from '#lib/clerk/page-session';
import { clerkEnvironment } from '#lib/clerk/variables';
import { verdictOf } from '#lib/clerk/verdict';
import { isApi, rejectedStatus } from '#lib/http/address';
import { nextForDocument } from '#lib/http/content-security-policy';
import { clientHeaders } from '#lib/http/credential';
import { type RejectionStatus, rejection } from '#lib/http/rejection';
import { signVerdict, VERDICT } from '#lib/http/signed-verdict';
import { rejectedActionStatus } from '#lib/next/server-action';
import { createAskProviders } from '#lib/providers';
import { providers } from '#providers';

const askProviders = createAskProviders(providers);

/** Returns true if the service proxies the provider's Frontend API. Only the local stack (`npm run dev`) does so. */
const isProxy = () => clerkEnvironment().CLERK_FAPI_URL !== undefined;

function options() {
  const { IDP_PUBLISHABLE_KEY, IDP_JWT_KEY } = clerkEnvironment();
  // Next.js can inline NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY at build time, so the key is an option.
  const keys = { publishableKey: IDP_PUBLISHABLE_KEY.key, telemetry: { disabled: true } };
  return IDP_JWT_KEY ? { ...keys, jwtKey: IDP_JWT_KEY } : keys;
}

/** Verifies the session of an API request. With authorized parties, the SDK also rejects a token without an origin (`azp`). */
const authenticate = authenticator(
  clerkMiddleware(
    async (auth) => passVerdict(verdictOf(await auth())),
    () => {
      const { IDP_AUTHORIZED_PARTIES: authorizedParties } = environment();
      return authorizedParties ? { ...options(), authorizedParties } : options();
    },
  ),
  askProviders,
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
    return nextForDocument(headers, {
      frontendApi: clerkEnvironment().IDP_PUBLISHABLE_KEY.frontendApi,
      sameOrigin: isProxy(),
      development: process.env.NODE_ENV === 'development',
    });
  },
  () => (isProxy() ? { ...options(), frontendApiProxy: { enabled: true } } : options()),
);

/** Forbids everything if a browser opens the response of a route as a document. */
const API_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function respond(request: NextRequest, status: RejectionStatus, error?: unknown): Response {
  const { headers, body } = rejection(status, request.headers.get('x-request-id'), error);
  return new Response(body, { status, headers });
}

const handle: NextMiddleware = async (request, event) => {
  const { method, nextUrl, headers } = request;
  const rejected = rejectedStatus({
    method,
    pathname: nextUrl.pathname,
    query: nextUrl.search.slice(1),
    contentLength: headers.get('content-length'),
  });
  if (rejected) return respond(request, rejected);
  if (isApi(nextUrl.pathname)) {
    const forRoute = clientHeaders(headers);
    for (const [name, value] of await authenticate(request, forRoute, event)) forRoute.set(name, value);
    const policy = { 'content-security-policy': API_POLICY };
    return NextResponse.next({ request: { headers: forRoute }, headers: policy });
  }
  if (isProxy() && nextUrl.pathname.startsWith('/__clerk/')) return pages(request, event);
  const rejectedAction = await rejectedActionStatus(request);
  if (rejectedAction) return respond(request, rejectedAction);
  return (await pageResponse(pages, request, event, askProviders)) ?? respond(request, 503);
};

/**
 * Passes the auth state to every route and page (docs/contract.md, 5.1). The guard of a route rejects requests without a
 * session.
 */
const middleware: NextMiddleware = async (request, event) => {
  try {
    return await handle(request, event);
  } catch (error) {
    return respond(request, 500, error);
  }
};
export default middleware;

// Excludes only static files. On a path without the middleware, the SDK's `auth()` would trust headers of the client. The
// default runtime (Edge) lacks node:crypto. Next.js 16 runs this file, and prefers the name proxy.ts.
export const config = { runtime: 'nodejs', matcher: ['/((?!_next/static/).*)'] };

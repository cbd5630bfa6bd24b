import { environment } from './lib/env';
import { passWithSessionUser } from './lib/idp/auth-state';
import { passForDocument } from './lib/idp/content-security-policy';
import { clerkMiddleware } from './lib/idp/server';
import { shield } from './lib/idp/shield';
import { sessionUserOf } from './lib/idp/verified-sessions';

const isProxy = () => environment().CLERK_FAPI_URL !== undefined;

function options() {
  const { IDP_PUBLISHABLE_KEY, IDP_JWT_KEY, IDP_AUTHORIZED_PARTIES } = environment();
  return {
    // Under the SDK's own name, a value that was set at build time would win.
    publishableKey: IDP_PUBLISHABLE_KEY.key,
    ...(IDP_JWT_KEY ? { jwtKey: IDP_JWT_KEY } : {}),
    ...(IDP_AUTHORIZED_PARTIES ? { authorizedParties: IDP_AUTHORIZED_PARTIES } : {}),
    telemetry: { disabled: true },
  };
}

const passWithPolicy = (headers: Headers) =>
  passForDocument(headers, {
    frontendApi: environment().IDP_PUBLISHABLE_KEY.frontendApi,
    sameOrigin: isProxy(),
    development: process.env.NODE_ENV === 'development',
  });

/** Supplies the identity provider's auth state to every route (contract 1, 5.1). It rejects nothing: the guard does. */
export default shield({
  pages: clerkMiddleware(
    (_auth, request) => passWithPolicy(request.headers),
    () => ({ ...options(), ...(isProxy() ? { frontendApiProxy: { enabled: true } } : {}) }),
  ),
  api: clerkMiddleware(async (auth) => passWithSessionUser(sessionUserOf(await auth()).user), options),
  passForDocument: passWithPolicy,
  isProxy,
  authorizedParties: () => environment().IDP_AUTHORIZED_PARTIES ?? [],
});

// Only files that no handler reads may stay outside: `auth()` believes forged headers where this did not run.
export const config = { runtime: 'nodejs', matcher: ['/((?!_next/static/).*)'] };

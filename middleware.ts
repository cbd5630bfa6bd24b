import { environment } from './lib/env';
import { passForDocument } from './lib/http/content-security-policy';
import { passWithSessionUser } from './lib/idp/auth-state';
import { shield } from './lib/idp/authentication-middleware';
import { foreignParty, namesForeignParty } from './lib/idp/authorized-party';
import { clerkMiddleware } from './lib/idp/server';
import { sessionUserOf } from './lib/idp/verified-sessions';

const isProxy = () => environment().CLERK_FAPI_URL !== undefined;

function options() {
  const { IDP_PUBLISHABLE_KEY, IDP_JWT_KEY } = environment();
  return {
    // Under the SDK's own name, a value that was set at build time would win.
    publishableKey: IDP_PUBLISHABLE_KEY.key,
    ...(IDP_JWT_KEY ? { jwtKey: IDP_JWT_KEY } : {}),
    telemetry: { disabled: true },
  };
}

/** The SDK would reject a token without `azp`. The page handler below rejects only tokens of foreign parties. */
const pageOptions = () => ({ ...options(), ...(isProxy() ? { frontendApiProxy: { enabled: true } } : {}) });

function apiOptions() {
  const { IDP_AUTHORIZED_PARTIES } = environment();
  return { ...options(), ...(IDP_AUTHORIZED_PARTIES ? { authorizedParties: IDP_AUTHORIZED_PARTIES } : {}) };
}

const passWithPolicy = (headers: Headers) =>
  passForDocument(headers, {
    frontendApi: environment().IDP_PUBLISHABLE_KEY.frontendApi,
    sameOrigin: isProxy(),
    development: process.env.NODE_ENV === 'development',
  });

/** Supplies the identity provider's auth state to every route (contract 1, 5.1). It rejects nothing: the guard does. */
export default shield({
  pages: clerkMiddleware(async (auth, request) => {
    // A page may accept pending sessions, so their tokens are checked too.
    const { sessionClaims } = await auth({ treatPendingAsSignedOut: false });
    return namesForeignParty(sessionClaims?.azp, environment().IDP_AUTHORIZED_PARTIES)
      ? foreignParty()
      : passWithPolicy(request.headers);
  }, pageOptions),
  api: clerkMiddleware(async (auth) => passWithSessionUser(sessionUserOf(await auth()).user), apiOptions),
  passForDocument: passWithPolicy,
  isProxy,
  authorizedParties: () => environment().IDP_AUTHORIZED_PARTIES ?? [],
});

// Only files that no handler reads may stay outside: `auth()` believes forged headers where this did not run.
export const config = { runtime: 'nodejs', matcher: ['/((?!_next/static/).*)'] };

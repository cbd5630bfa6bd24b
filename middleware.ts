import './lib/idp/credentials';
import { clerkMiddleware } from '@clerk/nextjs/server';
import { environment } from './lib/env';
import { withContentSecurityPolicy } from './lib/idp/content-security-policy';
import { shield } from './lib/idp/shield';

/** Supplies the identity provider's auth state to every route (SPEC 1, 5.1). It rejects nothing: the guard does. */
export default shield(
  clerkMiddleware(
    (_auth, request) => {
      const { IDP_PUBLISHABLE_KEY, CLERK_FAPI_URL } = environment();
      return withContentSecurityPolicy(request, {
        publishableKey: IDP_PUBLISHABLE_KEY,
        sameOrigin: CLERK_FAPI_URL !== undefined,
        development: process.env.NODE_ENV === 'development',
      });
    },
    () => {
      const { IDP_PUBLISHABLE_KEY, IDP_JWT_KEY, IDP_AUTHORIZED_PARTIES, CLERK_FAPI_URL } = environment();
      return {
        // Under the SDK's own name, a value that was set at build time would win.
        publishableKey: IDP_PUBLISHABLE_KEY,
        ...(IDP_JWT_KEY ? { jwtKey: IDP_JWT_KEY } : {}),
        ...(IDP_AUTHORIZED_PARTIES ? { authorizedParties: IDP_AUTHORIZED_PARTIES } : {}),
        ...(CLERK_FAPI_URL ? { frontendApiProxy: { enabled: true } } : {}),
        telemetry: { disabled: true },
      };
    },
  ),
  { isProxy: () => environment().CLERK_FAPI_URL !== undefined },
);

// Only files that no handler reads may stay outside: `auth()` believes forged headers where this did not run.
export const config = { runtime: 'nodejs', matcher: ['/((?!_next/static/).*)'] };

import { createClerkClient } from '@clerk/backend';
import { WITHOUT_KEYS } from '../clerk/sdk-formats';
import { verdictOf } from '../clerk/verdict';
import type { Sessions } from '../core/ports';

/**
 * Creates an implementation of Sessions that uses the provider's Backend SDK. DISABLED: the service does not import this file
 * (docs/contract.md, 5.1).
 *
 * To use the adapter in a program without `clerkMiddleware`, such as a queue worker or another web framework, create the
 * adapter once from `environment()` and call `authenticateRequest(request, adapter)` instead of `guard`. In this
 * Next.js application, also remove `clerkMiddleware` from middleware.ts. Otherwise, `clerkMiddleware` would verify each request
 * a second time.
 */
export function createAuthenticationAdapter(options: {
  readonly secretKey: string;
  readonly publishableKey: string;
  /** RSA public key in PEM format. With this key, the SDK verifies a session without a network call. */
  readonly jwtKey?: string;
  /** Origins of the frontends whose session tokens are accepted. Default: all. */
  readonly authorizedParties?: string[];
  readonly apiUrl?: string;
}): Sessions {
  const client = createClerkClient({ ...options, telemetry: { disabled: true } });
  return {
    async authenticate(request) {
      // The SDK throws for some malformed credentials.
      const state = await client.authenticateRequest(request, options).catch(() => undefined);
      const auth = state?.toAuth();
      if (auth?.isAuthenticated) return verdictOf(auth);
      const reason = state?.reason ?? 'not-verified';
      const isUnchecked = options.jwtKey === undefined && WITHOUT_KEYS.test(reason);
      return isUnchecked ? { reason, isUnchecked } : { reason };
    },
  };
}

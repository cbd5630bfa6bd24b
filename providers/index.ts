import type { Provider } from '#lib/providers';

/**
 * The providers of sessions beside Clerk, in the order of their queries, for example
 * `jwtProvider({ issuer, audience, prefix: 'auth0|' })` of `#lib/authentication/jwt-provider`. docs/leave-clerk.md has an example.
 */
export const providers: readonly Provider[] = [];

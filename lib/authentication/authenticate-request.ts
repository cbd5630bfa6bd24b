import type { AuthenticatedContext } from '../api/schemas';
import type { AuthenticationPort } from './port';

/**
 * Returns the internal id of an identity-provider user, or undefined if the user may not authenticate. `issuedAt` returns the
 * time at which the credential was issued, in seconds since 1970. `resolveUserId` in lib/user-id.ts has this type.
 */
export type ResolveUserId = (
  identityProviderUserId: string,
  issuedAt: () => number | undefined,
) => Promise<string | undefined>;

/**
 * Returns the authenticated context of a request. Returns undefined if the request has no verified, non-empty user id, or if
 * `resolveUserId` returns undefined. Implements docs/contract.md, 5.2, rules 2 to 4. The service does not call
 * this function, because its routes use lib/guard.ts. Passes errors of `resolveUserId` through.
 */
export async function authenticateRequest(
  request: Request,
  port: AuthenticationPort,
  resolveUserId: ResolveUserId,
): Promise<AuthenticatedContext | undefined> {
  const state = await port.authenticate(request);
  if (!state.isAuthenticated || state.userId === '') return undefined;
  const userId = await resolveUserId(state.userId, state.issuedAt);
  if (userId === undefined) return undefined;
  return Object.freeze({ isAuthenticated: true, userId, identityProviderUserId: state.userId });
}

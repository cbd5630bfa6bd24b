import type { AuthenticatedContext } from '../api/schemas';
import type { AuthenticationPort } from './port';

/**
 * Returns the internal id of an identity-provider user, or undefined if the user may not authenticate. `issuedAt` returns the
 * time at which the credential was issued, in seconds since 1970, or undefined if the time is unknown. `resolveUserId` in
 * lib/user-id.ts has this type.
 */
export type ResolveUserId = (
  identityProviderUserId: string,
  issuedAt: () => number | undefined,
) => Promise<string | undefined>;

/**
 * Returns the authenticated context of a request. Returns undefined if `port` finds no verified user, if the user id is empty,
 * or if `resolveUserId` returns undefined. Passes errors of `port` and of `resolveUserId` through.
 *
 * This function is for programs without Next.js, such as a queue worker. The routes of this service call `guard` (lib/guard.ts)
 * instead. Both check the session and resolve the internal id in the same way (docs/contract.md, 5.2, rules 2 and 3). This
 * function does not check the format of the identity-provider user id. lib/idp/authentication-adapter.ts implements `port` with
 * the provider's SDK.
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

import type { AuthenticatedContext } from '../api/schemas';
import type { AuthenticationPort } from './port';

/** Returns the internal user id of an identity-provider user id. `resolveUserId` of lib/user-id.ts has this type. */
export type ResolveUserId = (
  identityProviderUserId: string,
  issuedAt: () => number | undefined,
) => Promise<string | undefined>;

/**
 * Returns the authenticated context of a request, or undefined if it has no verified, non-empty user id (contract 5.2, rules
 * 2 to 4). The service does not call this function, because its routes use the guard (contract 5.1). Passes errors of
 * `resolveUserId` through.
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

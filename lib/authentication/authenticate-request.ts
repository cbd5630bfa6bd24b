import type { AuthenticationPort } from './port';

/** The context of contract 2.2, as the guard provides it to route handlers. */
export interface AuthenticatedRequest {
  readonly isAuthenticated: true;
  readonly userId: string;
  readonly identityProviderUserId: string;
}

/** Turns an identity-provider user id into the internal user id; `resolveUserId` is the live one. */
export type ResolveUserId = (identityProviderUserId: string) => Promise<string>;

/**
 * Resolves a request to its authenticated context, or to undefined without a verified, non-empty user id
 * (contract 5.2, rules 2 to 4). Not part of the live request path (contract 5.1): the guard is. Throws what
 * `resolveUserId` throws.
 */
export async function authenticateRequest(
  request: Request,
  port: AuthenticationPort,
  resolveUserId: ResolveUserId,
): Promise<AuthenticatedRequest | undefined> {
  const state = await port.authenticate(request);
  if (!state.isAuthenticated || state.userId === '') return undefined;
  const userId = await resolveUserId(state.userId);
  return Object.freeze({ isAuthenticated: true, userId, identityProviderUserId: state.userId });
}

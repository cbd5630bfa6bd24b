import type { AuthenticatedContext } from '../api/schemas';
import type { AuthenticationPort } from './port';

/** Returns the internal id of a user, or undefined if the user may not authenticate. lib/user-id.ts has this type. */
export type ResolveUserId = (
  identityProviderUserId: string,
  issuedAt: number | undefined,
) => Promise<string | undefined>;

/**
 * Returns the authenticated context of a request, as the guard does (docs/contract.md, 5.2, rules 2 and 3), in a program without
 * Next.js, such as a queue worker. Returns undefined if `port` finds no verified user, if the user id is empty, or if
 * `resolveUserId` returns undefined. Passes errors of `port` and of `resolveUserId` through.
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

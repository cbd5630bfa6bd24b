import { IdentityProviderUserId } from '../api/schemas';
import type { AuthState } from './auth-state';
import { type CredentialMemory, credentialMemory } from './credential-memory';
import { expiryOf } from './extract-credential';

declare global {
  /** Next.js bundles the middleware apart from the routes: a variable of this module would not be the same in both. */
  var verifiedSessions: CredentialMemory | undefined;
}

/**
 * The users of sessions that the SDK has verified, by all that the verdict of `auth()` in a route hangs on where the middleware
 * found a session: the token, the signature that the SDK's middleware made over it with our secret key, and the bearer, for
 * `auth()` refuses an OAuth or machine token as one.
 *
 * What stands in it is what `auth()` said: in the guard, or in the SDK's middleware of the same process, which then has just
 * read the same token by the same rules. No caller can make that signature, and the middleware drops what a caller sends in its
 * place. Where a platform runs the two apart, each process has a memory of its own. Why anything may be remembered stands in
 * credential-memory.ts.
 */
const sessions = () => {
  globalThis.verifiedSessions ??= credentialMemory();
  return globalThis.verifiedSessions;
};

const keyOf = ({ token, signature }: AuthState, authorization: string | null) => [
  token,
  signature,
  authorization ?? '',
];

/** The user of a session that was verified before. */
export const recallSessionUser = (state: AuthState, authorization: string | null): string | undefined =>
  sessions().recall(keyOf(state, authorization));

/** Remembers a verified session's user until its token expires, and for 60 s at most. */
export function keepSessionUser(state: AuthState, authorization: string | null, user: string): void {
  sessions().keep(keyOf(state, authorization), user, expiryOf(state.token));
}

/** The user that `auth()` names, in a route or in the SDK's middleware; undefined if it is nobody, or no id that a user could have. */
export function sessionUserOf({
  isAuthenticated,
  userId,
}: {
  readonly isAuthenticated: boolean;
  readonly userId: unknown;
}): string | undefined {
  return isAuthenticated ? IdentityProviderUserId.safeParse(userId).data : undefined;
}

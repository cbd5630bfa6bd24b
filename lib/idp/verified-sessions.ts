import * as z from 'zod/mini';
import { IdentityProviderUserId } from '../api/schemas';
import type { UnauthenticatedReason } from '../errors/unauthenticated-reason';
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

/** The properties of a result of `auth()` that decide about a session. */
interface SdkSession {
  readonly isAuthenticated: boolean;
  readonly userId: unknown;
  readonly sessionId: unknown;
  readonly sessionStatus?: unknown;
}

type Verdict =
  | { readonly user: string }
  | { readonly user: undefined; readonly reason: UnauthenticatedReason };

const SessionId = z.string().check(z.minLength(1));

/**
 * Returns the user of a session that the SDK verified, or the reason why there is none.
 *
 * Requires a session id. The instance signs its OIDC ID tokens and the tokens of custom JWT templates with the same key,
 * and the SDK takes them for session tokens. Only a session token has the claim `sid`.
 */
export function sessionUserOf({ isAuthenticated, userId, sessionId, sessionStatus }: SdkSession): Verdict {
  const rejected = (reason: UnauthenticatedReason) => ({ user: undefined, reason });
  if (!isAuthenticated) return rejected(sessionStatus === 'pending' ? 'pending-session' : 'malformed');
  if (!SessionId.safeParse(sessionId).success) return rejected('malformed');
  const user = IdentityProviderUserId.safeParse(userId).data;
  return user === undefined ? rejected('no-user-id') : { user };
}

import * as z from 'zod/mini';
import { IdentityProviderUserId } from '../api/schemas';
import type { UnauthenticatedReason } from '../errors/unauthenticated-reason';

/** The properties of the `auth()` result of Clerk's SDK that show whether there is a verified session. */
interface SdkSession {
  readonly isAuthenticated: boolean;
  readonly userId: unknown;
  readonly sessionId: unknown;
  readonly sessionStatus?: unknown;
  readonly sessionClaims?: unknown;
}

/** The user of a verified session, or the reason why there is no such user. */
export type Verdict =
  | {
      readonly user: string;
      /** Returns the time when the session token was issued, in seconds since 1970. */
      readonly issuedAt: () => number | undefined;
    }
  | { readonly user: undefined; readonly reason: UnauthenticatedReason };

const Claims = z.object({ iat: z.number() });
const SessionId = z.string().check(z.minLength(1));

/**
 * Returns the user of a session that the SDK verified, or the reason why there is no such user.
 *
 * Accepts a session only if it has a session id. The identity provider signs session tokens, OIDC ID tokens and the tokens of
 * custom JWT templates with one key, and the SDK accepts each of these as a session token. Only a session token has a session
 * id (`sid`).
 */
export function sessionUserOf({
  isAuthenticated,
  userId,
  sessionId,
  sessionStatus,
  sessionClaims,
}: SdkSession): Verdict {
  const rejected = (reason: UnauthenticatedReason) => ({ user: undefined, reason });
  if (!isAuthenticated) return rejected(sessionStatus === 'pending' ? 'pending-session' : 'malformed');
  if (!SessionId.safeParse(sessionId).success) return rejected('malformed');
  const user = IdentityProviderUserId.safeParse(userId).data;
  if (user === undefined) return rejected('no-user-id');
  return { user, issuedAt: () => Claims.safeParse(sessionClaims).data?.iat };
}

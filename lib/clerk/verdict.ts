import { describeError } from '../base/errors';
import { rateLimitedWarning } from '../base/log';
import { isIdentityProviderUserId, parseActor } from '../core/values';
import type { Verdict } from '../core/verdict';
import { parseOrganization, WITHOUT_KEYS } from './sdk-formats';
import { clerkEnvironment } from './variables';

/** The SDK's reason for a rejection. Other text is not logged, because it might contain a part of the request. */
const REASON = /^[a-z-]{1,100}$/;

const warn = rateLimitedWarning('credential not verified');

/**
 * Returns the verdict on a credential that the SDK did not accept for this reason, or for which it threw this error. Without
 * IDP_JWT_KEY, the SDK needs the provider, so the credential may be unchecked. Logs a warning then, and after an error.
 */
export function rejectedVerdict(word: string | null | undefined, error?: unknown): Verdict {
  const reason = word && REASON.test(word) ? word : 'not-verified';
  const isLate = error instanceof Error && error.name === 'TimeoutError';
  const isUnchecked = clerkEnvironment().IDP_JWT_KEY === undefined && (isLate || WITHOUT_KEYS.test(reason));
  if (error !== undefined) warn({ error: describeError(error) });
  else if (isUnchecked) warn({ reason });
  return isUnchecked ? { reason, isUnchecked } : { reason };
}

/** The properties of the SDK's `auth()` that show whether there is a verified session. */
interface SdkSession {
  readonly isAuthenticated: boolean;
  readonly userId: unknown;
  readonly sessionId: unknown;
  readonly sessionStatus?: unknown;
  readonly orgId?: unknown;
  readonly orgRole?: unknown;
  readonly sessionClaims?: { readonly iat?: number; readonly exp?: number; readonly act?: unknown } | null;
}

/** The verdict on a session that the SDK did not accept. */
export const SIGNED_OUT: Verdict = { reason: 'signed-out' };

/** Returns the user of a session that the SDK verified. Other tokens of the same key have no session id (`sid`). */
export function verdictOf(session: SdkSession): Verdict {
  const { isAuthenticated, userId, sessionId, sessionStatus, sessionClaims } = session;
  if (sessionStatus === 'pending') return { reason: 'pending-session' };
  if (!isAuthenticated) return SIGNED_OUT;
  const actor = parseActor(sessionClaims?.act);
  if (typeof sessionId !== 'string' || sessionId === '' || actor === null) return { reason: 'malformed' };
  if (!isIdentityProviderUserId(userId)) return { reason: 'no-user-id' };
  const organization = parseOrganization(session);
  return { user: userId, issuedAt: sessionClaims?.iat, expiresAt: sessionClaims?.exp, organization, actor };
}

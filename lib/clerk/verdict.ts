import { createHmac, timingSafeEqual } from 'node:crypto';
import * as z from 'zod/mini';
import { environment } from '../base/env';
import { describeError } from '../base/errors';
import { rateLimitedWarning } from '../base/log';
import { fieldsOf, isIdentityProviderUserId } from '../core/values';
import type { Verdict } from '../core/verdict';
import { parseActor, parseOrganization, WITHOUT_KEYS } from './sdk-formats';

const Actor = z.object({ id: z.string(), type: z.exactOptional(z.string()) });
const provider = z.optional(z.string());
const Session = z.object({
  provider,
  user: z.string(),
  issuedAt: z.optional(z.number()),
  expiresAt: z.optional(z.number()),
  organization: z.optional(z.object({ id: z.string(), role: z.string() })),
  actor: z.optional(Actor),
});
const reason = z.string();
const AccessToken = z.object({
  reason,
  expiresAt: z.optional(z.number()),
  accessToken: z.object({
    user: z.string(),
    clientId: z.string(),
    scopes: z.array(z.string()),
    audiences: z.array(z.string()),
    actor: z.optional(Actor),
  }),
});
const Unchecked = z.object({
  provider,
  reason,
  isUnchecked: z.literal(true),
  isAccessToken: z.optional(z.boolean()),
});
const Without = z.object({ provider, reason });

/** Parses a verdict by its fields. A union of the schemas would try each of them. */
function parseVerdict(value: unknown): Verdict {
  const { user, accessToken, isUnchecked } = fieldsOf(value);
  if (user !== undefined) return Session.parse(value);
  if (accessToken !== undefined) return AccessToken.parse(value);
  return isUnchecked === undefined ? Without.parse(value) : Unchecked.parse(value);
}

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
  const isUnchecked = environment().IDP_JWT_KEY === undefined && (isLate || WITHOUT_KEYS.test(reason));
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

/** Request header in which the middleware passes the signed verdict to routes and pages. A client cannot set it. */
export const VERDICT = 'x-identity-link-verdict';

/** Request header with the path of the requested page. The middleware does not set it for an API request. */
export const PAGE_PATH = 'x-identity-link-path';

const macOf = (payload: string) =>
  createHmac('sha256', environment().IDP_SECRET_KEY).update(payload).digest('base64url');

/** Returns the value of the verdict header. Its signature proves that the middleware set it, and not a client. */
export function signVerdict(verdict: Verdict): string {
  const payload = Buffer.from(JSON.stringify(verdict)).toString('base64url');
  return `${payload}.${macOf(payload)}`;
}

/** The verdict on a request that bypassed the middleware. */
export const NO_VERDICT: Verdict = { reason: 'no-verdict' };

/** Reads the verdict of a request. */
export function readVerdict(headers: Pick<Headers, 'get'>): Verdict {
  const [payload = '', mac = ''] = (headers.get(VERDICT) ?? '').split('.');
  const [given, expected] = [Buffer.from(mac), Buffer.from(macOf(payload))];
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return NO_VERDICT;
  return parseVerdict(JSON.parse(Buffer.from(payload, 'base64url').toString()));
}

import { auth } from '@clerk/nextjs/server';
import {
  extractCredential,
  parseOrganization,
  REASON_HEADER,
  WITHOUT_KEYS,
} from '../../../lib/clerk/sdk-formats';
import type { Sessions } from '../../../lib/core/ports';
import { isIdentityProviderUserId, parseActor } from '../../../lib/core/values';
import type { Verdict } from '../../../lib/core/verdict';

/**
 * Returns the verdict on the session that `clerkMiddleware` verified. Returns no user for an id that a database cannot store
 * exactly. Throws if the middleware did not run for the request.
 */
export async function readVerdict(headers: Pick<Headers, 'get'>): Promise<Verdict> {
  const session = await auth();
  const { userId, sessionId, sessionClaims } = session;
  const reason = headers.get(REASON_HEADER) || 'signed-out';
  const isUnchecked = !process.env['CLERK_JWT_KEY'] && WITHOUT_KEYS.test(reason);
  if (!userId || !sessionId) return isUnchecked ? { reason, isUnchecked } : { reason };
  if (!isIdentityProviderUserId(userId)) return { reason: 'no-user-id' };
  const actor = parseActor(sessionClaims?.act);
  if (actor === null) return { reason: 'malformed' };
  return { user: userId, issuedAt: sessionClaims?.iat, actor, organization: parseOrganization(session) };
}

/**
 * Returns the sessions of routes. There is none for a malformed bearer token, and if the browser sent the session cookies for
 * another site or another origin, except for the origins of `authorizedParties`.
 */
export const sessionsOf = (authorizedParties: readonly string[]): Sessions => ({
  authenticate({ method, headers }) {
    const credential = extractCredential(method, headers, authorizedParties);
    if (typeof credential === 'string' && credential !== 'no-credential') return { reason: credential };
    return readVerdict(headers);
  },
});

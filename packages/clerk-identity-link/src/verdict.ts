import { auth } from '@clerk/nextjs/server';
import { isIdentityProviderUserId } from '#lib/api/identifier';
import { HttpError } from '#lib/http/error';
import { parseActor, parseOrganization } from '#lib/idp/claims';
import { extractCredential, WITHOUT_KEYS } from '#lib/idp/credential';
import { configuration } from './configuration';

/**
 * Returns the user of the session that `clerkMiddleware` verified. Returns no user for an id that a database cannot store
 * exactly. Throws if the middleware did not run for the request.
 */
export async function readVerdict(headers: Pick<Headers, 'get'>) {
  const session = await auth();
  const { userId, sessionId, sessionClaims } = session;
  const reason = headers.get('x-clerk-auth-reason') || 'signed-out';
  const isUnchecked = !process.env['CLERK_JWT_KEY'] && WITHOUT_KEYS.test(reason);
  if (!userId || !sessionId) return { user: undefined, reason, isUnchecked, isAccessToken: false };
  if (!isIdentityProviderUserId(userId)) return { user: undefined, reason: 'no-user-id' };
  const actor = parseActor(sessionClaims?.act);
  if (actor === null) return { user: undefined, reason: 'malformed' };
  return { user: userId, issuedAt: sessionClaims?.iat, actor, organization: parseOrganization(session) };
}

/**
 * Throws an HttpError 401 for a malformed bearer token, and if the browser sent the session cookies for another site or another
 * origin, except for the origins of `authorizedParties`.
 */
export function ensureCsrfCheck({ method, headers }: Pick<Request, 'method' | 'headers'>): void {
  const credential = extractCredential(method, headers, configuration().authorizedParties ?? []);
  if (typeof credential === 'string' && credential !== 'no-credential')
    throw new HttpError(401, 'Unauthorized');
}

import { auth } from '@clerk/nextjs/server';
import { isIdentityProviderUserId, parseActor, parseOrganization } from '../api/input';
import { HttpError } from '../http/error';
import { extractCredential, WITHOUT_KEYS } from './credential';

/**
 * Returns the user of the session that `clerkMiddleware` verified. Returns no user for an id that a database cannot store
 * exactly. Throws if the middleware did not run for the request.
 */
export async function readVerdict(headers: Pick<Headers, 'get'>) {
  const session = await auth();
  const { userId, sessionId, sessionClaims } = session;
  const reason = headers.get('x-clerk-auth-reason') || 'signed-out';
  const isUnchecked = !process.env['CLERK_JWT_KEY'] && WITHOUT_KEYS.test(reason);
  if (!userId || !sessionId) return { user: undefined, reason, isUnchecked };
  if (!isIdentityProviderUserId(userId)) return { user: undefined, reason: 'no-user-id' };
  const actor = parseActor(sessionClaims?.act);
  if (actor === null) return { user: undefined, reason: 'malformed' };
  return { user: userId, issuedAt: sessionClaims?.iat, actor, organization: parseOrganization(session) };
}

/** Throws an HttpError 401 if another site made the browser send the session cookies. A bearer token is not affected. */
export function ensureCsrfCheck(headers: Headers): void {
  const isCrossSite = headers.get('sec-fetch-site') === 'cross-site';
  if (isCrossSite && extractCredential('GET', headers, []) === 'foreign-cookie')
    throw new HttpError(401, 'Unauthorized');
}

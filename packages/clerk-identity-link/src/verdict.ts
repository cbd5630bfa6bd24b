import { auth } from '@clerk/nextjs/server';
import { isIdentityProviderUserId } from '#lib/api/identifier';
import { HttpError } from '#lib/http/error';
import { type ActiveOrganization, type Actor, parseActor, parseOrganization } from '#lib/idp/claims';
import { extractCredential } from '#lib/idp/credential';
import { REASON_HEADER, WITHOUT_KEYS } from '#lib/idp/sdk-formats';
import { configuration } from './configuration';

/** Result of the check of a session. */
export interface Verdict {
  readonly user?: string;
  readonly reason?: string;
  readonly isUnchecked?: boolean;
  readonly isAccessToken?: boolean;
  readonly issuedAt?: number | undefined;
  readonly actor?: Actor | undefined;
  readonly organization?: ActiveOrganization | undefined;
}

/**
 * Returns the user of the session that `clerkMiddleware` verified. Returns no user for an id that a database cannot store
 * exactly. Throws if the middleware did not run for the request.
 */
export async function readVerdict(headers: Pick<Headers, 'get'>): Promise<Verdict> {
  const session = await auth();
  const { userId, sessionId, sessionClaims } = session;
  const reason = headers.get(REASON_HEADER) || 'signed-out';
  const isUnchecked = !process.env['CLERK_JWT_KEY'] && WITHOUT_KEYS.test(reason);
  if (!userId || !sessionId) return { reason, isUnchecked };
  if (!isIdentityProviderUserId(userId)) return { reason: 'no-user-id' };
  const actor = parseActor(sessionClaims?.act);
  if (actor === null) return { reason: 'malformed' };
  return { user: userId, issuedAt: sessionClaims?.iat, actor, organization: parseOrganization(session) };
}

/**
 * Throws an HttpError 401 for a malformed bearer token, and if the browser sent the session cookies for another site or another
 * origin, except for the origins of `authorizedParties`.
 */
export function ensureApiRequest({ method, headers }: Pick<Request, 'method' | 'headers'>): void {
  const credential = extractCredential(method, headers, configuration().authorizedParties ?? []);
  if (typeof credential === 'string' && credential !== 'no-credential')
    throw new HttpError(401, 'Unauthorized');
}

import { auth } from '@clerk/nextjs/server';
import { parseActor } from '../api/input';

/** Returns the user of the session that `clerkMiddleware` verified. Throws if the middleware did not run for the request. */
export async function readVerdict(_headers: unknown) {
  const { userId, sessionId, sessionClaims } = await auth();
  if (!userId || !sessionId) return { user: undefined, reason: 'signed-out' };
  const actor = parseActor(sessionClaims?.act);
  if (actor === null) return { user: undefined, reason: 'malformed' };
  return { user: userId, issuedAt: sessionClaims?.iat, actor };
}

/** Does nothing. In the service, only some paths can be guarded. */
export const rejectPage = (_headers: unknown): void => undefined;

import { headers } from 'next/headers';
import { redirect } from 'next/navigation';
import { cache } from 'react';
import type { AuthenticatedContext } from './api/schemas';
import { contextOf } from './guard';
import { HttpError } from './http/error';
import { verdictOf } from './idp/page-verdict';
import { PAGE_PATH } from './idp/sanitize-request';
import { isInRoute, log, type RequestLogFields, requestIdOf, withLogFields } from './log';
import { telemetry } from './telemetry/with-span';

const readUser = async () => contextOf(await verdictOf(await headers()));

/**
 * Returns the authenticated context of the current request: the internal id and the identity provider's id of the user. Returns
 * undefined if there is no verified session, or if an operator has deleted the user since the session token was issued. Use
 * this function in server components, layouts, server actions and route handlers.
 *
 * The internal id comes from the cache or from the database, as in `guard` (lib/guard.ts). A new user gets a row in the
 * database. The components and layouts of a page share one result. Passes database errors through. After such an error, a page
 * shows its error boundary. A cache failure has no effect. For a page or a server action, the function writes one log line with
 * the request id, the duration and `RequestLogFields`. For a route, the log line of the route has these fields.
 */
export const getUser = cache(async (): Promise<AuthenticatedContext | undefined> => {
  if (isInRoute()) return readUser();
  const startedAt = performance.now();
  const fields: RequestLogFields = {};
  try {
    return await withLogFields(fields, readUser);
  } finally {
    const requestId = requestIdOf((await headers()).get('x-request-id'));
    telemetry()?.recordPageUser(fields);
    log.info({ requestId, ms: Math.round(performance.now() - startedAt), ...fields }, 'user');
  }
});

/**
 * Returns the context that `getUser` returns. If `getUser` returns undefined, a page or a server action redirects to the
 * sign-in page, and the browser returns to the page after the sign-in. A route responds with 401 `{"message": "Unauthorized"}`
 * instead.
 */
export async function requireUser(): Promise<AuthenticatedContext> {
  const user = await getUser();
  if (user) return user;
  const path = (await headers()).get(PAGE_PATH);
  if (path === null) throw new HttpError(401, 'Unauthorized');
  redirect(`/sign-in?redirect_url=${encodeURIComponent(path)}`);
}

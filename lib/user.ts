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
 * undefined without a verified session. Use this function in server components, layouts, server actions and route handlers.
 *
 * The internal id comes from the cache or from the database, as in `guard` (lib/guard.ts). A new user gets a row in the
 * database. The components and layouts of a page share one result. Passes database errors through, and a page then shows its
 * error boundary. A cache failure has no effect. For a page or a server action, writes one log line, which has the fields of
 * a guarded route's log line.
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
 * Returns the same as `getUser`, but never undefined. Without a verified session, a page or a server action redirects to the
 * sign-in page. After the sign-in, the browser returns to the page. A route responds with 401 `{"message": "Unauthorized"}`.
 */
export async function requireUser(): Promise<AuthenticatedContext> {
  const user = await getUser();
  if (user) return user;
  const path = (await headers()).get(PAGE_PATH);
  if (path === null) throw new HttpError(401, 'Unauthorized');
  redirect(`/sign-in?redirect_url=${encodeURIComponent(path)}`);
}

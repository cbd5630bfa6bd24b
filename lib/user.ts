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
 * Returns the authenticated context of the present request (contract 2.2), or undefined without a verified session. It is
 * for server components, layouts, server actions and route handlers.
 *
 * The internal id comes from the cache or from a registration on first sight, as in `guard`. The components and layouts of a
 * page share one result. Passes database errors through, and a page then shows its error boundary. A cache failure has no
 * effect. For a page and a server action, a separate log line contains the fields of a guarded request.
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
 * Returns the authenticated context like `getUser`. Without a verified session, a page and a server action redirect to the
 * sign-in page, which leads back to the page. A route responds with 401 `{"message": "Unauthorized"}`.
 */
export async function requireUser(): Promise<AuthenticatedContext> {
  const user = await getUser();
  if (user) return user;
  const path = (await headers()).get(PAGE_PATH);
  if (path === null) throw new HttpError(401, 'Unauthorized');
  redirect(`/sign-in?redirect_url=${encodeURIComponent(path)}`);
}

import { headers } from 'next/headers';
import { cache } from 'react';
import type { AuthenticatedContext } from '#lib/api/schemas';
import { logUserLookup } from '#lib/http/request-log';
import { redirectToSignIn } from '#lib/idp/sign-in';
import { readVerdict } from '#lib/idp/verdict';
import { resolveUser } from './guard';
import { resolveTenant, type TenantContext } from './guard-tenant';
import type { Actor } from './idp/claims';

const currentVerdict = cache(async () => readVerdict(await headers()));

/**
 * Returns both ids of the user of the current page, server action or route. Returns undefined without a verified session, and
 * for a forgotten user. Links a new user. The components and layouts of a page share one result. Passes database errors
 * through. After such an error, a page shows its error boundary. A cache failure has no effect.
 */
export const getUser = cache(async (): Promise<AuthenticatedContext | undefined> => {
  const verdict = await currentVerdict();
  return logUserLookup(await headers(), () => resolveUser(verdict));
});

/**
 * Returns the same as `getUser`. Without a user, a page or a server action redirects to the sign-in page, which returns the
 * browser to this page. A route responds with a 401 in JSON.
 */
export async function requireUser(): Promise<AuthenticatedContext> {
  return (await getUser()) ?? redirectToSignIn(await headers());
}

/**
 * Returns the context of the user in the active organization of the session. Returns undefined without an active organization,
 * and where `getUser` does. Creates the tenant of a new organization. The components and layouts of a page share one result.
 */
export const getTenant = cache(
  async (): Promise<TenantContext | undefined> =>
    (await resolveTenant(await currentVerdict(), getUser)).tenant,
);

/**
 * Returns the actor of the current page, server action or route: a person who impersonates the user, or an agent
 * (`type: 'agent'`). Returns undefined if the user acts, and without a verified session.
 */
export async function getActor(): Promise<Actor | undefined> {
  return (await currentVerdict()).actor;
}

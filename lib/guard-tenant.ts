import type { AuthenticatedContext } from './api/schemas';
import { type GuardedHandler, guardBy, resolveUser, type Verdict } from './guard';
import { HttpError } from './http/error';
import { addLogFields } from './http/request-log';
import type { RouteContext, RouteHandler } from './http/route';
import { readId, resolveId } from './ids/resolve';

/** The authenticated user of a request, and the organization that is active in the session: the tenant. */
export interface TenantContext extends AuthenticatedContext {
  /** The internal id of the organization. */
  readonly tenantId: string;
  readonly identityProviderOrganizationId: string;
  /** The role of the user in the organization when the session token was issued, such as `org:admin`. */
  readonly organizationRole: string;
}

/**
 * Returns the context of a user in the active organization of a verdict, and creates the tenant of a new organization. Returns
 * undefined without an organization, for a forgotten or deleted one, and where `resolveUser` does. `looking` is the lookup of the user, if it has already begun.
 */
export async function resolveTenant(
  verdict: Verdict,
  looking = resolveUser(verdict),
): Promise<TenantContext | undefined> {
  const { organization } = verdict;
  // Begins together with the lookup of the user, so both are one round trip.
  const read = organization && readId('tenant', organization.id);
  const user = await looking;
  if (user === undefined || organization === undefined) return undefined;
  // Without the issue time of the token, because no token links a forgotten organization again.
  const tenant = await resolveId('tenant', organization.id, undefined, read);
  if (tenant === undefined) return undefined;
  return Object.freeze({
    ...user,
    tenantId: tenant.id,
    identityProviderOrganizationId: organization.id,
    organizationRole: organization.role,
  });
}

function forbid(reason: string): never {
  addLogFields({ reason });
  throw new HttpError(403, 'Forbidden');
}

/**
 * Creates a route like `guard`, whose handler runs only if an organization is active in the session and, with `role`, only if
 * the user has exactly this role there (`org:admin`). The first request of an organization creates its tenant.
 *
 * Without a session, the response is a 401. Without an active organization or with another role, it is a 403
 * `{"message": "Forbidden"}`, before any call to the cache or the database. A forgotten user gets a 401 and creates no tenant. For
 * an organization that was forgotten, or deleted at the provider, the response is a 403.
 */
export const guardTenant = <C extends RouteContext>(
  handler: GuardedHandler<TenantContext, C>,
  { role }: { readonly role?: string } = {},
): RouteHandler<C> =>
  guardBy(async (verdict) => {
    const { user, organization } = verdict;
    if (user !== undefined && organization === undefined) forbid('no-organization');
    if (organization && role !== undefined && role !== organization.role) forbid('organization-role');
    const looking = resolveUser(verdict);
    const tenant = await resolveTenant(verdict, looking);
    if (tenant === undefined && (await looking)) forbid('forgotten-organization');
    return tenant;
  }, handler);

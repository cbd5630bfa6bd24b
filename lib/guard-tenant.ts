import type { AuthenticatedContext } from '#lib/api/schemas';
import { addLogFields } from '#lib/http/request-log';
import type { Verdict } from '#lib/idp/verdict';
import { readCachedId } from '#lib/ids/cache';
import { type GuardedHandler, guardBy, resolveUser } from './guard';
import { HttpError } from './http/error';
import type { RouteContext, RouteHandler } from './http/route';
import { resolveId } from './ids/resolve';

/** The authenticated user of a request, and the organization that is active in the session: the tenant. */
export interface TenantContext extends AuthenticatedContext {
  /** The internal id of the organization. */
  readonly tenantId: string;
  readonly identityProviderOrganizationId: string;
  /** The role of the user in the organization when the session token was issued, such as `org:admin`. */
  readonly organizationRole: string;
}

/**
 * Returns the user of a verdict and, as `tenant`, the user's context in the active organization. Creates the tenant of a new
 * organization. `tenant` is undefined without a user or an organization, and for a forgotten or deleted organization.
 * `resolve` returns the user.
 */
export async function resolveTenant(
  verdict: Verdict,
  resolve: (verdict: Verdict) => Promise<AuthenticatedContext | undefined> = resolveUser,
): Promise<{ readonly user?: AuthenticatedContext | undefined; readonly tenant?: TenantContext }> {
  const { organization } = verdict;
  // Both lookups begin together, so they are one round trip.
  const [user, cached] = await Promise.all([
    resolve(verdict),
    organization && readCachedId('tenant', organization.id),
  ]);
  if (user === undefined || organization === undefined) return { user };
  // Without the issue time of the token, because no token links a forgotten organization again.
  const tenant = await resolveId('tenant', organization.id, undefined, cached);
  if (tenant.state === 'forgotten') return { user };
  return {
    user,
    tenant: Object.freeze({
      ...user,
      tenantId: tenant.id,
      identityProviderOrganizationId: organization.id,
      organizationRole: organization.role,
    }),
  };
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
 * `{"message": "Forbidden"}`, before any call to the cache or the database. A forgotten user gets a 401 and creates no tenant.
 * For an organization that was forgotten, or deleted at the provider, the response is a 403.
 */
export const guardTenant = <C extends RouteContext>(
  handler: GuardedHandler<TenantContext, C>,
  { role }: { readonly role?: string } = {},
): RouteHandler<C> =>
  guardBy(async (verdict) => {
    const { user, organization } = verdict;
    if (user !== undefined && organization === undefined) forbid('no-organization');
    if (organization && role !== undefined && role !== organization.role) forbid('organization-role');
    const resolved = await resolveTenant(verdict);
    if (resolved.user && resolved.tenant === undefined) forbid('forgotten-organization');
    return resolved.tenant;
  }, handler);

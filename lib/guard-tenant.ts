import type { ActiveOrganization } from './api/input';
import type { AuthenticatedContext } from './api/schemas';
import { type GuardedHandler, guardWith, resolveVerdict } from './guard';
import { HttpError } from './http/error';
import type { RouteContext, RouteHandler } from './http/route';
import { readVerdict } from './idp/verdict';
import { addLogFields } from './log';
import { resolveTenantId } from './tenant-id';

/** The authenticated user of a request, and the organization that is active in the session: the tenant. */
export interface TenantContext extends AuthenticatedContext {
  /** The internal id of the organization. */
  readonly tenantId: string;
  readonly identityProviderOrganizationId: string;
  /** The role of the user in the organization when the session token was issued, such as `org:admin`. */
  readonly organizationRole: string;
}

/**
 * Returns the context of a user in an organization, and creates the tenant of a new organization. Returns undefined without an
 * organization or a user. Passes database errors through.
 */
export async function resolveTenant(
  organization: ActiveOrganization | undefined,
  user: Promise<AuthenticatedContext | undefined>,
): Promise<TenantContext | undefined> {
  const [context, tenantId] = await Promise.all([
    user,
    organization && resolveTenantId(organization.id, user),
  ]);
  if (!organization || !context || tenantId === undefined) return undefined;
  const { id: identityProviderOrganizationId, role: organizationRole } = organization;
  return Object.freeze({ ...context, tenantId, identityProviderOrganizationId, organizationRole });
}

/** Throws a 403 without an organization, or if the user has another role. */
function checkOrganization(organization: ActiveOrganization | undefined, role: string | undefined): void {
  if (organization !== undefined && (role ?? organization.role) === organization.role) return;
  addLogFields({ reason: organization ? 'organization-role' : 'no-organization' });
  throw new HttpError(403, 'Forbidden');
}

/**
 * Creates a route like `guard`, whose handler runs only if an organization is active in the session and, with `role`, only if
 * the user has exactly this role there (`org:admin`). The first request of an organization creates its tenant.
 *
 * Without a session, the response is a 401. Without an active organization or with another role, it is a 403
 * `{"message": "Forbidden"}`, before any call to the cache or the database. A forgotten user gets a 401 and creates no tenant.
 */
export const guardTenant = <C extends RouteContext>(
  handler: GuardedHandler<TenantContext, C>,
  { role }: { readonly role?: string } = {},
): RouteHandler<C> =>
  guardWith(async (headers) => {
    const verdict = await readVerdict(headers);
    if (verdict.user !== undefined) checkOrganization(verdict.organization, role);
    return resolveTenant(verdict.organization, resolveVerdict(verdict));
  }, handler);

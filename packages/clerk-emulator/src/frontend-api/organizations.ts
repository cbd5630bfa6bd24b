import { z } from 'zod';
import { pageOf, parse, type Routes } from '../http';
import type { Organization } from '../instance/data';
import type { Instance } from '../instance/instance';
import {
  publicOrganizationResource,
  requirePermission,
  roleResources,
} from '../instance/organization-resources';
import {
  createOrganization,
  deleteOrganization,
  requireMembership,
  requireOrganization,
  updateOrganization,
} from '../instance/organizations';
import { type BrowserRequest, requireSignedIn } from './browser';

const Fields = z.object({ name: z.string().min(1), slug: z.string().min(1).optional() });

/** Returns a function that returns the user of a request with the user's organization. It throws unless the user is a member. */
export function memberOf(instance: Instance) {
  return (request: BrowserRequest) => {
    const { user } = requireSignedIn(instance, request);
    const organization = requireOrganization(instance, request.id);
    return { user, organization, membership: requireMembership(instance, organization, user.id) };
  };
}

/** Returns a function as `memberOf` does. It also throws a 403 unless the role of the user has the permission. */
export function managerOf(instance: Instance, permission = 'org:sys_memberships:manage') {
  return (request: BrowserRequest) => {
    const found = memberOf(instance)(request);
    requirePermission(instance, found.membership, permission);
    return found;
  };
}

/** Returns the routes for organizations. Only members can read one. A change needs a permission of the member's role. */
export function organizationRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const asMember = memberOf(instance);
  const shown = (organization: Organization) => publicOrganizationResource(instance, organization);
  return {
    'POST /v1/organizations': (request) => {
      const { user } = requireSignedIn(instance, request);
      const { name, slug } = parse(Fields, request.body);
      return shown(createOrganization(instance, { name, creator: user, ...(slug && { slug }) }));
    },
    'GET /v1/organizations/:id': (request) => shown(asMember(request).organization),
    'PATCH /v1/organizations/:id': (request) => {
      const { organization } = managerOf(instance, 'org:sys_profile:manage')(request);
      const { name = organization.name, slug = organization.slug } = parse(Fields.partial(), request.body);
      return shown(updateOrganization(instance, organization, { name, slug }));
    },
    'DELETE /v1/organizations/:id': (request) => {
      const { organization } = managerOf(instance, 'org:sys_profile:delete')(request);
      return deleteOrganization(instance, organization);
    },
    'GET /v1/organizations/:id/roles': (request) => {
      asMember(request);
      return pageOf(request.url, roleResources(instance));
    },
    'GET /v1/me/organization_suggestions': (request) => {
      requireSignedIn(instance, request);
      return pageOf(request.url, []);
    },
  };
}

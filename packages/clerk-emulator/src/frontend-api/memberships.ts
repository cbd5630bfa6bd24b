import { z } from 'zod';
import { pageOf, parse, type Routes } from '../http';
import { requireUser } from '../instance/accounts';
import type { Membership } from '../instance/data';
import { textsOf } from '../instance/identifiers';
import type { Instance } from '../instance/instance';
import { publicMembershipResource } from '../instance/organization-resources';
import {
  addMember,
  deletedResource,
  membershipsOf,
  membersOf,
  removeMember,
  requireMembership,
  updateMember,
} from '../instance/organizations';
import { type BrowserRequest, requireSignedIn } from './browser';
import { managerOf, memberOf } from './organizations';

const Role = z.object({ role: z.string() });
const NewMember = z.object({ user_id: z.string(), role: z.string() });

/** Returns the routes for the members of organizations, and for the memberships of the signed-in user. */
export function membershipRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const asMember = memberOf(instance);
  const asManager = managerOf(instance);
  const member = (membership: Membership) => publicMembershipResource(instance, membership);
  return {
    'GET /v1/organizations/:id/memberships': (request) => {
      const { searchParams } = request.url;
      const roles = [...searchParams.getAll('role'), ...searchParams.getAll('role[]')];
      const members = membersOf(instance, asMember(request).organization);
      const query = searchParams.get('query')?.toLowerCase() ?? '';
      const selected = members.filter(
        (each) =>
          (roles.length === 0 || roles.includes(each.role)) &&
          textsOf(requireUser(instance, each.userId)).some((text) => text?.toLowerCase().includes(query)),
      );
      return pageOf(request.url, selected, member);
    },
    'POST /v1/organizations/:id/memberships': (request) => {
      const { organization } = asManager(request);
      const { user_id, role } = parse(NewMember, request.body);
      return member(addMember(instance, organization, { user: requireUser(instance, user_id), role }));
    },
    'PATCH /v1/organizations/:id/memberships/:otherId': (request) => {
      const membership = requireMembership(instance, asManager(request).organization, request.otherId);
      return member(updateMember(instance, membership, parse(Role, request.body)));
    },
    'DELETE /v1/organizations/:id/memberships/:otherId': (request) => {
      const membership = requireMembership(instance, asManager(request).organization, request.otherId);
      removeMember(instance, membership);
      return member(membership);
    },
    'GET /v1/me/organization_memberships': (request) =>
      pageOf(request.url, membershipsOf(instance, requireSignedIn(instance, request).user), member),
    'DELETE /v1/me/organization_memberships/:id': (request) => {
      const { membership } = asMember(request);
      removeMember(instance, membership);
      return deletedResource(membership.id, 'organization_membership');
    },
  };
}

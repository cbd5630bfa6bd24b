import { z } from 'zod';
import { pageOf, parse, type Routes, wrapHandlers } from '../http';
import { requireUser } from '../instance/accounts';
import { requireFound } from '../instance/api-error';
import type { Membership, Organization, OrganizationInvitation } from '../instance/data';
import { EmailAddress, textsOf } from '../instance/identifiers';
import { storeImage } from '../instance/images';
import type { Instance } from '../instance/instance';
import {
  domainResource,
  publicInvitationResource,
  publicMembershipResource,
  publicOrganizationData,
  publicOrganizationResource,
  requirePermission,
  roleResources,
} from '../instance/organization-resources';
import {
  addMember,
  closeInvitation,
  createOrganization,
  deletedResource,
  deleteOrganization,
  findMembership,
  invitationsTo,
  inviteToOrganization,
  membershipsOf,
  membersOf,
  ownOrganization,
  pendingInvitations,
  removeMember,
  requireMembership,
  requireOrganization,
  requireOtherAdmin,
  updateMember,
  updateOrganization,
} from '../instance/organizations';
import { invitationStatus } from '../instance/resources';
import type { UserRequest } from './browser';

/** A request of a member of the organization in the path. */
interface MemberRequest extends UserRequest {
  readonly organization: Organization;
  readonly membership: Membership;
}
type MemberRoutes = Routes<MemberRequest, unknown>;

const Name = z.string().min(1);
const Changes = z.object({ name: z.exactOptional(Name), slug: z.exactOptional(Name) });
const Fields = Changes.extend({ name: Name });
const Role = z.object({ role: z.string() });
const NewMember = Role.extend({ user_id: z.string() });
/** A form has one field for each address. Without effect: `notify`. The emulator mails no links. */
const Invitees = Role.extend({
  email_address: z.preprocess((value) => [value].flat(), z.array(EmailAddress).min(1)),
});

/** Returns the routes for organizations. Only members can read one. A change needs a permission of the member's role. */
export function organizationRoutes(instance: Instance): Routes<UserRequest, unknown> {
  const forMembers = (routes: MemberRoutes, permission?: string) =>
    wrapHandlers(routes, (handler) => (request: UserRequest) => {
      const { user, id } = request;
      const organization = requireOrganization(instance, ownOrganization(instance, user.id, id));
      const membership = requireMembership(instance, organization, user.id);
      if (permission !== undefined) requirePermission(instance, membership, permission);
      return handler({ ...request, organization, membership });
    });
  return {
    ...ownRoutes(instance),
    ...forMembers(readingRoutes(instance)),
    ...forMembers(profileRoutes(instance), 'org:sys_profile:manage'),
    ...forMembers(
      { 'DELETE /v1/organizations/:id': ({ organization }) => deleteOrganization(instance, organization) },
      'org:sys_profile:delete',
    ),
    ...forMembers(managementRoutes(instance), 'org:sys_memberships:manage'),
  };
}

/** Returns the routes of a user without an active organization: organizations to create, memberships and invitations. */
function ownRoutes(instance: Instance): Routes<UserRequest, unknown> {
  const shown = (invitation: OrganizationInvitation) => ({
    ...publicInvitationResource(invitation),
    public_organization_data: publicOrganizationData(instance, invitation),
  });
  return {
    'POST /v1/organizations': ({ user, body }) => {
      const organization = createOrganization(instance, { ...parse(Fields, body), creator: user });
      return publicOrganizationResource(instance, organization);
    },
    'GET /v1/me/organization_memberships': ({ user, url }) =>
      pageOf(url, membershipsOf(instance, user), (each) => publicMembershipResource(instance, each)),
    'GET /v1/me/organization_suggestions': ({ url }) => pageOf(url, []),
    'GET /v1/me/organization_invitations': ({ user, url }) =>
      pageOf(url, withStatus(instance, invitationsTo(instance, user), url), shown),
    'POST /v1/me/organization_invitations/:id/accept': ({ user, id }) => {
      const invitation = requireInvitation(withStatus(instance, invitationsTo(instance, user)), id);
      const organization = requireOrganization(instance, invitation.organizationId);
      if (!findMembership(instance, organization, user.id)) {
        const { role, publicMetadata, privateMetadata } = invitation;
        addMember(instance, organization, { user, role, publicMetadata, privateMetadata });
      }
      return shown(closeInvitation(instance, invitation, 'accepted', user));
    },
  };
}

/** Returns the routes that every member may use. */
function readingRoutes(instance: Instance): MemberRoutes {
  return {
    'GET /v1/organizations/:id': ({ organization }) => publicOrganizationResource(instance, organization),
    'GET /v1/organizations/:id/domains': ({ organization, url }) => {
      const own = instance.store.organizationDomains.where('organizationId', organization.id);
      return pageOf(url, own, (domain) => domainResource(instance, domain));
    },
    'GET /v1/organizations/:id/roles': ({ url }) => pageOf(url, roleResources(instance)),
    'GET /v1/organizations/:id/memberships': ({ organization, url }) => {
      const roles = valuesOf(url, 'role');
      const query = url.searchParams.get('query')?.toLowerCase() ?? '';
      const selected = membersOf(instance, organization).filter(
        ({ role, userId }) =>
          (roles.length === 0 || roles.includes(role)) &&
          textsOf(requireUser(instance, userId)).some((text) => text?.toLowerCase().includes(query)),
      );
      return pageOf(url, selected, (each) => publicMembershipResource(instance, each));
    },
    'GET /v1/organizations/:id/invitations': ({ organization, url }) => {
      const own = instance.store.organizationInvitations.where('organizationId', organization.id);
      return pageOf(url, withStatus(instance, own, url), publicInvitationResource);
    },
    'DELETE /v1/me/organization_memberships/:id': ({ membership }) => {
      requireOtherAdmin(instance, membership);
      removeMember(instance, membership);
      return deletedResource(membership.id, 'organization_membership');
    },
  };
}

/** Returns the routes that change an organization. */
function profileRoutes(instance: Instance): MemberRoutes {
  const update = (...change: [Organization, Partial<Organization>]) =>
    publicOrganizationResource(instance, updateOrganization(instance, ...change));
  return {
    'PATCH /v1/organizations/:id': ({ organization, body }) => update(organization, parse(Changes, body)),
    'PUT /v1/organizations/:id/logo': ({ organization, url, file }) =>
      update(organization, { imageUrl: storeImage(instance, url, file) }),
    'DELETE /v1/organizations/:id/logo': ({ organization }) => update(organization, { imageUrl: null }),
  };
}

/** Returns the routes that change the members and the invitations of an organization. */
function managementRoutes(instance: Instance): MemberRoutes {
  const member = (membership: Membership) => publicMembershipResource(instance, membership);
  const invite = ({ user, organization, body }: MemberRequest) => {
    const { email_address, role } = parse(Invitees, body);
    const invited = email_address.map((email) => ({ email, role, inviterId: user.id }));
    return inviteToOrganization(instance, organization, invited).map(publicInvitationResource);
  };
  return {
    'POST /v1/organizations/:id/memberships': ({ organization, body }) => {
      const { user_id, role } = parse(NewMember, body);
      return member(addMember(instance, organization, { user: requireUser(instance, user_id), role }));
    },
    'PATCH /v1/organizations/:id/memberships/:otherId': ({ organization, otherId, body }) => {
      const membership = requireMembership(instance, organization, otherId);
      return member(updateMember(instance, membership, parse(Role, body)));
    },
    'DELETE /v1/organizations/:id/memberships/:otherId': ({ organization, otherId }) => {
      const membership = requireMembership(instance, organization, otherId);
      requireOtherAdmin(instance, membership);
      removeMember(instance, membership);
      return member(membership);
    },
    'POST /v1/organizations/:id/invitations': (request) => invite(request)[0],
    'POST /v1/organizations/:id/invitations/bulk': invite,
    'POST /v1/organizations/:id/invitations/:otherId/revoke': ({ organization, otherId }) => {
      const invitation = requireInvitation(pendingInvitations(instance, organization), otherId);
      return publicInvitationResource(closeInvitation(instance, invitation, 'revoked'));
    },
  };
}

const valuesOf = ({ searchParams }: URL, name: string) => [
  ...searchParams.getAll(name),
  ...searchParams.getAll(`${name}[]`),
];

/** Returns the invitations with a status of the query, by default those that can be accepted. */
function withStatus(instance: Instance, invitations: readonly OrganizationInvitation[], url?: URL) {
  const given = url ? valuesOf(url, 'status') : [];
  const wanted = given.length > 0 ? given : ['pending'];
  return invitations.filter((each) => wanted.includes(invitationStatus(instance, each)));
}

const requireInvitation = (invitations: readonly OrganizationInvitation[], id: string) =>
  requireFound(
    invitations.find((each) => each.id === id),
    'The invitation',
  );

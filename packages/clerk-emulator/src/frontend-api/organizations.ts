import { z } from 'zod';
import { pageOf, parse, type Routes } from '../http';
import { requireUser } from '../instance/accounts';
import { requireFound } from '../instance/api-error';
import type { Membership, Organization, OrganizationInvitation, User } from '../instance/data';
import { EmailAddress, textsOf } from '../instance/identifiers';
import { storeImage } from '../instance/images';
import type { Instance } from '../instance/instance';
import {
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
import { type BrowserRequest, requireSignedIn } from './browser';

const Fields = z.object({ name: z.string().min(1), slug: z.string().min(1).optional() });

/**
 * Returns a function that returns the user of a request with the user's organization. It throws unless the user is a member, and a
 * 403 unless the role of the user has the permission.
 */
function memberOf(instance: Instance, permission?: string) {
  return (request: BrowserRequest) => {
    const { user } = requireSignedIn(instance, request);
    const organization = requireOrganization(instance, ownOrganization(instance, user.id, request.id));
    const membership = requireMembership(instance, organization, user.id);
    if (permission !== undefined) requirePermission(instance, membership, permission);
    return { user, organization, membership };
  };
}

const MANAGE_MEMBERS = 'org:sys_memberships:manage';

/** Returns the routes for organizations. Only members can read one. A change needs a permission of the member's role. */
export function organizationRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const asMember = memberOf(instance);
  const asManager = memberOf(instance, 'org:sys_profile:manage');
  const shown = (organization: Organization) => publicOrganizationResource(instance, organization);
  return {
    'POST /v1/organizations': (request) => {
      const { user } = requireSignedIn(instance, request);
      const { name, slug } = parse(Fields, request.body);
      return shown(createOrganization(instance, { name, creator: user, ...(slug && { slug }) }));
    },
    'GET /v1/organizations/:id': (request) => shown(asMember(request).organization),
    'PATCH /v1/organizations/:id': (request) => {
      const { organization } = asManager(request);
      const { name = organization.name, slug = organization.slug } = parse(Fields.partial(), request.body);
      return shown(updateOrganization(instance, organization, { name, slug }));
    },
    'PUT /v1/organizations/:id/logo': (request) => {
      const { organization } = asManager(request);
      const imageUrl = storeImage(instance, request.url, request.file);
      return shown(updateOrganization(instance, organization, { imageUrl }));
    },
    'DELETE /v1/organizations/:id/logo': (request) =>
      shown(updateOrganization(instance, asManager(request).organization, { imageUrl: null })),
    // The emulator has no domains. An organization has none until an admin adds one.
    'GET /v1/organizations/:id/domains': (request) => {
      asMember(request);
      return pageOf(request.url, []);
    },
    'DELETE /v1/organizations/:id': (request) => {
      const { organization } = memberOf(instance, 'org:sys_profile:delete')(request);
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

const Role = z.object({ role: z.string() });
const NewMember = z.object({ user_id: z.string(), role: z.string() });

/** Returns the routes for the members of organizations, and for the memberships of the signed-in user. */
export function membershipRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const asMember = memberOf(instance);
  const asManager = memberOf(instance, MANAGE_MEMBERS);
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
      requireOtherAdmin(instance, membership);
      removeMember(instance, membership);
      return member(membership);
    },
    'GET /v1/me/organization_memberships': (request) =>
      pageOf(request.url, membershipsOf(instance, requireSignedIn(instance, request).user), member),
    'DELETE /v1/me/organization_memberships/:id': (request) => {
      const { membership } = asMember(request);
      requireOtherAdmin(instance, membership);
      removeMember(instance, membership);
      return deletedResource(membership.id, 'organization_membership');
    },
  };
}

/** A form has one field for each address. */
const Invitees = z.object({
  email_address: z.preprocess((value) => [value].flat(), z.array(EmailAddress).min(1)),
  role: z.string(),
});

/** Returns the routes for the invitations of organizations, and for those of the signed-in user. */
export function organizationInvitationRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const asMember = memberOf(instance);
  const asManager = memberOf(instance, MANAGE_MEMBERS);
  const pending = (organization: Organization) => pendingInvitations(instance, organization);
  const invite = (request: BrowserRequest) => {
    const { user, organization } = asManager(request);
    const { email_address, role } = parse(Invitees, request.body);
    const invited = email_address.map((email) => ({ email, role, inviterId: user.id }));
    return inviteToOrganization(instance, organization, invited).map(publicInvitationResource);
  };
  const openInvitations = (user: User) =>
    invitationsTo(instance, user).filter((each) => invitationStatus(instance, each) === 'pending');
  const requireOpen = (invitations: readonly OrganizationInvitation[], id: string) =>
    requireFound(
      invitations.find((each) => each.id === id),
      'The invitation',
    );
  const withOrganization = (invitation: OrganizationInvitation) => ({
    ...publicInvitationResource(invitation),
    public_organization_data: publicOrganizationData(instance, invitation),
  });
  return {
    'GET /v1/organizations/:id/invitations': (request) =>
      pageOf(request.url, pending(asMember(request).organization), publicInvitationResource),
    'POST /v1/organizations/:id/invitations': (request) => invite(request)[0],
    'POST /v1/organizations/:id/invitations/bulk': invite,
    'POST /v1/organizations/:id/invitations/:otherId/revoke': (request) => {
      const invitation = requireOpen(pending(asManager(request).organization), request.otherId);
      return publicInvitationResource(closeInvitation(instance, invitation, 'revoked'));
    },
    'GET /v1/me/organization_invitations': (request) => {
      const { user } = requireSignedIn(instance, request);
      return pageOf(request.url, openInvitations(user), withOrganization);
    },
    'POST /v1/me/organization_invitations/:id/accept': (request) => {
      const { user } = requireSignedIn(instance, request);
      const invitation = requireOpen(openInvitations(user), request.id);
      const organization = requireOrganization(instance, invitation.organizationId);
      if (!findMembership(instance, organization, user.id)) {
        const { role, publicMetadata, privateMetadata } = invitation;
        addMember(instance, organization, { user, role, publicMetadata, privateMetadata });
      }
      return withOrganization(closeInvitation(instance, invitation, 'accepted', user));
    },
  };
}

import { z } from 'zod';
import { pageOf, parse, type Routes } from '../http';
import { EmailAddress } from '../instance/accounts';
import { requireFound } from '../instance/api-error';
import type { Organization, OrganizationInvitation, User } from '../instance/data';
import type { Instance } from '../instance/instance';
import { publicInvitationResource, publicOrganizationData } from '../instance/organization-resources';
import {
  addMember,
  closeInvitation,
  findMembership,
  invitationsTo,
  inviteToOrganization,
  pendingInvitations,
  requireOrganization,
} from '../instance/organizations';
import { invitationStatus } from '../instance/resources';
import { type BrowserRequest, requireSignedIn } from './browser';
import { managerOf, memberOf } from './organizations';

/** A form has one field for each address. */
const Invitees = z.object({
  email_address: z.preprocess((value) => [value].flat(), z.array(EmailAddress).min(1)),
  role: z.string(),
});

/** Returns the routes for the invitations of organizations, and for those of the signed-in user. */
export function organizationInvitationRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const asMember = memberOf(instance);
  const asManager = managerOf(instance);
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

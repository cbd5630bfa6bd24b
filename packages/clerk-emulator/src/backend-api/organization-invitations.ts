import { z } from 'zod';
import { type ApiRequest, pageOf, parse, type Routes } from '../http';
import { EmailAddress, requireUser } from '../instance/accounts';
import { requireFound } from '../instance/api-error';
import type { OrganizationInvitation } from '../instance/data';
import type { Instance } from '../instance/instance';
import { invitationResource } from '../instance/organization-resources';
import { closeInvitation, inviteToOrganization, requireOrganization } from '../instance/organizations';
import { invitationStatus } from '../instance/resources';
import { describeList } from './lists';
import { changedMetadata, OwnMetadata } from './metadata';
import { Days } from './tickets';

const Invite = z.strictObject({
  email_address: EmailAddress,
  role: z.string(),
  inviter_user_id: z.string().nullish(),
  ...OwnMetadata.shape,
  expires_in_days: Days,
  // Without effect, because the emulator mails no links.
  redirect_url: z.url().nullish(),
  notify: z.boolean().nullish(),
});
const InviteBulk = z.object({ items: z.array(Invite).max(10) });
// Without effect, because the secret key permits everything.
const Revoke = z.strictObject({ requesting_user_id: z.string().nullish() });

/** Returns the Backend API routes for invitations to organizations. */
export function organizationInvitationRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const { organizationInvitations } = instance.store;
  const invitation = (row: OrganizationInvitation) => invitationResource(instance, row);
  const invitationsOf = (id: string) => {
    const organization = requireOrganization(instance, id);
    return organizationInvitations.all().filter(({ organizationId }) => organizationId === organization.id);
  };
  const requireInvitation = ({ id, otherId }: ApiRequest) => {
    const found = invitationsOf(id).find((each) => each.id === otherId);
    return requireFound(found, 'The invitation');
  };
  const invite = (id: string, inputs: readonly z.output<typeof Invite>[]) => {
    const invited = inputs.map(({ email_address: email, role, expires_in_days: days, ...more }) => {
      const inviterId = more.inviter_user_id ? requireUser(instance, more.inviter_user_id).id : null;
      return { email, role, inviterId, days, ...changedMetadata(more) };
    });
    return inviteToOrganization(instance, requireOrganization(instance, id), invited).map(invitation);
  };
  const selectInvitations = describeList<OrganizationInvitation>({
    fields: {
      status: (row) => [invitationStatus(instance, row)],
      email_address: ({ email }) => [email],
    },
    filters: 'status email_address',
    orders: 'created_at email_address',
  });
  return {
    'POST /v1/organizations/:id/invitations': ({ id, body }) => invite(id, [parse(Invite, body)])[0],
    'POST /v1/organizations/:id/invitations/bulk': ({ id, body }) => {
      const data = invite(id, parse(InviteBulk, body).items);
      return { data, total_count: data.length };
    },
    'GET /v1/organizations/:id/invitations': ({ id, url }) =>
      pageOf(url, selectInvitations(invitationsOf(id), url), invitation),
    'GET /v1/organizations/:id/invitations/:otherId': (request) => invitation(requireInvitation(request)),
    'POST /v1/organizations/:id/invitations/:otherId/revoke': (request) => {
      parse(Revoke, request.body);
      return invitation(closeInvitation(instance, requireInvitation(request), 'revoked'));
    },
  };
}

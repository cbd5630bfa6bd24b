import { z } from 'zod';
import { isSelected, pageOf, parse, type Routes } from '../http';
import { EmailAddress, requireUser } from '../instance/accounts';
import type { Membership, Organization } from '../instance/data';
import { notFound } from '../instance/error';
import type { Instance } from '../instance/instance';
import {
  invitationResource,
  membershipResource,
  organizationResource,
} from '../instance/organization-resources';
import {
  addMember,
  closeInvitation,
  createOrganization,
  deletedResource,
  deleteOrganization,
  inviteToOrganization,
  membersOf,
  removeMember,
  requireMembership,
  requireOrganization,
  updateMember,
  updateOrganization,
} from '../instance/organizations';
import { selectById } from '../instance/table';
import { changedMetadata, Metadata, mergedMetadata } from './metadata';

const Fields = {
  slug: z.string().min(1).nullish(),
  max_allowed_memberships: z.number().int().min(0).nullish(),
  public_metadata: Metadata.nullish(),
  private_metadata: Metadata.nullish(),
  // The emulator accepts and ignores the other fields of Clerk.
  admin_delete_enabled: z.unknown().optional(),
  created_at: z.unknown().optional(),
  role_set_key: z.unknown().optional(),
};
const CreateOrganization = z.strictObject({
  ...Fields,
  name: z.string().min(1),
  created_by: z.string().nullish(),
});
const UpdateOrganization = z.strictObject({ ...Fields, name: z.string().min(1).optional() });
const AddMember = z.object({ user_id: z.string(), role: z.string() });
const UpdateMember = z.object({ role: z.string() });
const Invite = z.object({
  email_address: EmailAddress,
  role: z.string(),
  inviter_user_id: z.string().nullish(),
  public_metadata: Metadata.nullish(),
  private_metadata: Metadata.nullish(),
});

/** Returns the Backend API routes for organizations, their members and invitations. */
export function organizationRoutes(instance: Instance): Routes {
  const { organizations, organizationInvitations } = instance.store;
  const member = (membership: Membership) => membershipResource(instance, membership);
  const find = (id: string) => requireOrganization(instance, id);
  const shown = (organization: Organization) => ({ body: organizationResource(instance, organization) });
  const requireMember = (id: string, userId: string) => requireMembership(instance, find(id), userId);
  return {
    'POST /v1/organizations': ({ body }) => {
      const { name, created_by, ...fields } = parse(CreateOrganization, body);
      const creator = created_by ? requireUser(instance, created_by) : undefined;
      return shown(createOrganization(instance, { name, creator, ...changes(fields) }));
    },
    'GET /v1/organizations': ({ url: { searchParams }, url }) => {
      const query = searchParams.get('query')?.toLowerCase() ?? '';
      const users = searchParams.getAll('user_id').map((id) => id.replace(/^\+/, ''));
      const selected = selectById(organizations, searchParams.getAll('organization_id')).filter(
        (each) =>
          [each.id, each.name, each.slug].some((text) => text.toLowerCase().includes(query)) &&
          (users.length === 0 || membersOf(instance, each).some(({ userId }) => users.includes(userId))),
      );
      return { body: pageOf(url, selected.reverse(), (each) => organizationResource(instance, each)) };
    },
    'GET /v1/organizations/:id': ({ id }) => shown(find(id)),
    'PATCH /v1/organizations/:id': ({ id, body }) => {
      const { name, ...fields } = parse(UpdateOrganization, body);
      return shown(updateOrganization(instance, find(id), { ...changes(fields), ...(name && { name }) }));
    },
    'PATCH /v1/organizations/:id/metadata': ({ id, body }) =>
      shown(updateOrganization(instance, find(id), mergedMetadata(find(id), body))),
    'DELETE /v1/organizations/:id': ({ id }) => {
      const organization = find(id);
      deleteOrganization(instance, organization);
      return { body: deletedResource(organization.id, 'organization') };
    },
    'GET /v1/organizations/:id/memberships': ({ id, url }) => {
      const members = membersOf(instance, find(id)).filter(
        ({ role, userId }) => isSelected(url, 'role', role) && isSelected(url, 'user_id', userId),
      );
      return { body: pageOf(url, members, member) };
    },
    'POST /v1/organizations/:id/memberships': ({ id, body }) => {
      const { user_id, role } = parse(AddMember, body);
      const user = requireUser(instance, user_id);
      return { body: member(addMember(instance, find(id), { user, role })) };
    },
    'PATCH /v1/organizations/:id/memberships/:otherId': ({ id, otherId, body }) => {
      const { role } = parse(UpdateMember, body);
      return { body: member(updateMember(instance, requireMember(id, otherId), { role })) };
    },
    'PATCH /v1/organizations/:id/memberships/:otherId/metadata': ({ id, otherId, body }) => {
      const membership = requireMember(id, otherId);
      return { body: member(updateMember(instance, membership, mergedMetadata(membership, body))) };
    },
    'DELETE /v1/organizations/:id/memberships/:otherId': ({ id, otherId }) => {
      const membership = requireMember(id, otherId);
      const body = member(membership);
      removeMember(instance, membership);
      return { body };
    },
    'POST /v1/organizations/:id/invitations': ({ id, body }) => {
      const { email_address: email, role, inviter_user_id, ...fields } = parse(Invite, body);
      const invited = { email, role, inviterId: inviter_user_id ?? null, ...changedMetadata(fields) };
      return { body: invitationResource(instance, inviteToOrganization(instance, find(id), invited)) };
    },
    'GET /v1/organizations/:id/invitations': ({ id, url }) => {
      const organization = find(id);
      const invitations = organizationInvitations
        .all()
        .filter((each) => each.organizationId === organization.id && isSelected(url, 'status', each.status));
      return { body: pageOf(url, invitations.reverse(), (each) => invitationResource(instance, each)) };
    },
    'POST /v1/organizations/:id/invitations/:otherId/revoke': ({ id, otherId }) => {
      const invitation = organizationInvitations.get(otherId);
      if (invitation?.organizationId !== find(id).id) throw notFound('The invitation');
      return { body: invitationResource(instance, closeInvitation(instance, invitation, 'revoked')) };
    },
  };
}

function changes(fields: Omit<z.output<typeof UpdateOrganization>, 'name'>) {
  const { slug, max_allowed_memberships: maxMemberships } = fields;
  return {
    ...(slug && { slug }),
    ...(typeof maxMemberships === 'number' && { maxMemberships }),
    ...changedMetadata(fields),
  };
}

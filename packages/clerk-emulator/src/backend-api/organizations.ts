import { z } from 'zod';
import { type ApiRequest, pageOf, parse, type Routes } from '../http';
import { requireUser } from '../instance/accounts';
import { requireFound } from '../instance/api-error';
import type { Membership, Organization, OrganizationInvitation } from '../instance/data';
import { EmailAddress } from '../instance/identifiers';
import { storeImage } from '../instance/images';
import type { Instance } from '../instance/instance';
import { changedMetadata, mergedMetadata, OwnMetadata } from '../instance/metadata';
import {
  invitationResource,
  membershipResource,
  organizationResource,
} from '../instance/organization-resources';
import {
  ADMIN,
  addMember,
  closeInvitation,
  createOrganization,
  deleteOrganization,
  inviteToOrganization,
  membersOf,
  type OrganizationFields,
  removeMember,
  requireMembership,
  requireOrganization,
  updateMember,
  updateOrganization,
} from '../instance/organizations';
import { invitationStatus } from '../instance/resources';
import { describeList } from './lists';
import { Days } from './tickets';
import { USER_FILTERS, userFields } from './user-lists';

const Fields = {
  ...OwnMetadata.shape,
  slug: z.string().min(1).nullish(),
  max_allowed_memberships: z.number().int().min(0).nullish(),
  admin_delete_enabled: z.boolean().nullish(),
  created_at: z.iso.datetime({ offset: true }).nullish(),
  // Without effect, because the emulator has no role sets.
  role_set_key: z.string().nullish(),
};
export const CreateOrganization = z.strictObject({
  ...Fields,
  name: z.string().min(1),
  created_by: z.string().nullish(),
});
const UpdateOrganization = z.strictObject({ ...Fields, name: z.string().min(1).nullish() });
/** The name of a field, and of the parameter that includes it. */
const MISSING_MEMBER = 'missing_member_with_elevated_permissions';

/** Returns the Backend API routes for organizations. */
export function organizationRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const { organizations } = instance.store;
  const find = (id: string) => requireOrganization(instance, id);
  const shown = (row: Organization) => organizationResource(instance, row);
  const change = (row: Organization, changes: OrganizationFields) =>
    shown(updateOrganization(instance, row, changes));
  /** Returns an organization with the fields that the query includes. */
  const including = ({ searchParams }: URL, organization: Organization) => {
    const { members_count, ...resource } = organizationResource(instance, organization);
    const isMissing = membersOf(instance, organization).every(({ role }) => role !== ADMIN);
    const includes = (name: string) => searchParams.get(`include_${name}`) === 'true';
    return {
      ...resource,
      ...(includes('members_count') && { members_count }),
      ...(includes(MISSING_MEMBER) && { [MISSING_MEMBER]: isMissing }),
    };
  };
  const selectOrganizations = describeList<Organization>({
    fields: {
      query: ({ id, name, slug }) => [id, name, slug],
      user_id: (row) => membersOf(instance, row).map(({ userId }) => userId),
      organization_id: ({ id }) => [id],
      name: ({ name }) => [name],
      members_count: (row) => [membersOf(instance, row).length],
    },
    filters: 'query user_id organization_id',
    orders: 'name created_at members_count',
    others: `limit offset include_members_count include_${MISSING_MEMBER}`,
  });
  return {
    'POST /v1/organizations': ({ body }) => {
      const { name, created_by, ...fields } = parse(CreateOrganization, body);
      const creator = created_by ? requireUser(instance, created_by, 'created_by') : undefined;
      return shown(createOrganization(instance, { name, creator, ...organizationChanges(fields) }));
    },
    'GET /v1/organizations': ({ url }) =>
      pageOf(url, selectOrganizations(organizations.all(), url), (row) => including(url, row)),
    'GET /v1/organizations/:id': ({ id, url }) => including(url, find(id)),
    'PATCH /v1/organizations/:id': ({ id, body }) => {
      const { name, ...fields } = parse(UpdateOrganization, body);
      return change(find(id), { ...organizationChanges(fields), ...(name && { name }) });
    },
    'PATCH /v1/organizations/:id/metadata': ({ id, body }) =>
      change(find(id), mergedMetadata(find(id), parse(OwnMetadata, body))),
    'PUT /v1/organizations/:id/metadata': ({ id, body }) =>
      change(find(id), changedMetadata(parse(OwnMetadata, body))),
    // Without effect: `uploader_user_id`.
    'PUT /v1/organizations/:id/logo': ({ id, url, file }) =>
      change(find(id), { imageUrl: storeImage(instance, url, file) }),
    'DELETE /v1/organizations/:id/logo': ({ id }) => change(find(id), { imageUrl: null }),
    'DELETE /v1/organizations/:id': ({ id }) => deleteOrganization(instance, find(id)),
  };
}

export function organizationChanges(fields: Omit<z.output<typeof UpdateOrganization>, 'name'>) {
  const { slug, max_allowed_memberships: maxMemberships, created_at } = fields;
  return {
    ...(slug && { slug }),
    ...(typeof maxMemberships === 'number' && { maxMemberships }),
    ...(typeof fields.admin_delete_enabled === 'boolean' && {
      adminDeleteEnabled: fields.admin_delete_enabled,
    }),
    ...(created_at && { createdAt: Date.parse(created_at) }),
    ...changedMetadata(fields),
  };
}

const AddMember = z.strictObject({ ...OwnMetadata.shape, user_id: z.string(), role: z.string() });
const UpdateMember = z.strictObject({ role: z.string() });

/** Returns the Backend API routes for the members of organizations. */
export function membershipRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const find = (id: string) => requireOrganization(instance, id);
  const member = (membership: Membership) => membershipResource(instance, membership);
  const requireMember = (id: string, userId: string) => requireMembership(instance, find(id), userId);
  const selectMembers = describeList<Membership>({
    fields: {
      ...userFields(({ userId }) => requireUser(instance, userId)),
      role: ({ role }) => [role],
    },
    filters: `${USER_FILTERS} role`,
    orders: 'phone_number email_address created_at first_name last_name username',
    defaultOrder: '',
  });
  return {
    'GET /v1/organizations/:id/memberships': ({ id, url }) =>
      pageOf(url, selectMembers(membersOf(instance, find(id)), url), member),
    'POST /v1/organizations/:id/memberships': ({ id, body }) => {
      const { user_id, role, ...fields } = parse(AddMember, body);
      const user = requireUser(instance, user_id);
      return member(addMember(instance, find(id), { user, role, ...changedMetadata(fields) }));
    },
    'PATCH /v1/organizations/:id/memberships/:otherId': ({ id, otherId, body }) =>
      member(updateMember(instance, requireMember(id, otherId), parse(UpdateMember, body))),
    'PATCH /v1/organizations/:id/memberships/:otherId/metadata': ({ id, otherId, body }) => {
      const membership = requireMember(id, otherId);
      return member(updateMember(instance, membership, mergedMetadata(membership, parse(OwnMetadata, body))));
    },
    'DELETE /v1/organizations/:id/memberships/:otherId': ({ id, otherId }) =>
      removeMember(instance, requireMember(id, otherId)),
  };
}

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
  const invitation = (row: OrganizationInvitation) => invitationResource(instance, row);
  const invitationsOf = (id: string) =>
    instance.store.organizationInvitations.where('organizationId', requireOrganization(instance, id).id);
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

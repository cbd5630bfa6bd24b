import { ApiError } from './api-error';
import type { Membership, Organization, OrganizationDomain, OrganizationInvitation } from './data';
import { imageUrl } from './images';
import type { Instance } from './instance';
import {
  clerkFields,
  datedResource,
  invitationStatus,
  publicUserData,
  type Resource,
  userImage,
} from './resources';

const SYSTEM_PERMISSIONS = {
  'org:admin': [
    'org:sys_profile:manage',
    'org:sys_profile:delete',
    'org:sys_memberships:manage',
    'org:sys_memberships:read',
    'org:sys_domains:read',
    'org:sys_domains:manage',
  ],
  'org:member': ['org:sys_memberships:read'],
};

/** Returns the permissions of each role of the instance: those of Clerk, and those of the setting `roles`. */
function rolePermissions({ settings }: Pick<Instance, 'settings'>): Map<string, readonly string[]> {
  const roles = new Map<string, readonly string[]>(Object.entries(SYSTEM_PERMISSIONS));
  for (const [role, permissions] of Object.entries(settings.roles))
    roles.set(role, [...(roles.get(role) ?? []), ...permissions]);
  return roles;
}

const isSystem = (permission: string) => permission.startsWith('org:sys_');
const permissionsOf = (instance: Instance, role: string) => rolePermissions(instance).get(role) ?? [];
/** Returns the name of a role, such as `Admin` for `org:admin`. */
const roleName = (role: string) => role.replace(/^org:/, '').replace(/^./, (letter) => letter.toUpperCase());

/** Returns the roles of the instance, with their permissions. */
export const roleResources = (instance: Instance): Resource[] =>
  [...rolePermissions(instance)].map(([key, permissions]) => ({
    object: 'role',
    id: `role_${key.slice(4)}`,
    key,
    name: roleName(key),
    description: `The role ${roleName(key)}`,
    is_creator_eligible: key === 'org:admin',
    permissions: permissions.map((permission) => ({
      object: 'permission',
      id: `perm_${permission}`,
      key: permission,
      name: permission,
      description: permission,
      type: isSystem(permission) ? 'system' : 'user',
      created_at: 0,
      updated_at: 0,
    })),
    created_at: 0,
    updated_at: 0,
  }));

/**
 * Returns the claims of a session token about its active organization. The custom permissions of the role are in `fea`, the
 * features, in `per`, the actions, and in `fpm`, a bit mask of the actions of each feature. System permissions are in no token.
 */
export function organizationClaims(instance: Instance, { organizationId, role }: Membership) {
  const slug = instance.store.organizations.get(organizationId)?.slug;
  const organization = { id: organizationId, rol: role.replace(/^org:/, ''), slg: slug };
  const custom = permissionsOf(instance, role).filter((permission) => !isSystem(permission));
  if (custom.length === 0) return { o: organization };
  const parts = (index: number) => [...new Set(custom.map((key) => key.split(':')[index]))].sort();
  const [features, actions] = [parts(1), parts(2)];
  const masks = features.map((feature) =>
    actions.map((action, bit) => (custom.includes(`org:${feature}:${action}`) ? 2 ** bit : 0)),
  );
  return {
    fea: features.map((feature) => `o:${feature}`).join(','),
    o: {
      ...organization,
      per: actions.join(','),
      fpm: masks.map((bits) => bits.reduce((sum, bit) => sum + bit)).join(','),
    },
  };
}

/** Throws Clerk's 403 unless the role of the member has the permission. */
export function requirePermission(instance: Instance, { role }: Membership, permission: string): void {
  if (permissionsOf(instance, role).includes(permission)) return;
  throw new ApiError(403, 'missing_permission', `The permission ${permission} is missing.`);
}

/** An organization in responses of the Backend API and in events. */
export function organizationResource(instance: Instance, organization: Organization): Resource {
  const { createdBy } = organization;
  return {
    ...publicOrganizationResource(instance, organization),
    private_metadata: organization.privateMetadata,
    ...(createdBy !== null && { created_by: createdBy }),
  };
}

/** An organization in responses of the Frontend API, without the private metadata. */
export function publicOrganizationResource(instance: Instance, organization: Organization): Resource {
  const { memberships, organizationInvitations } = instance.store;
  const invitations = organizationInvitations.where('organizationId', organization.id);
  return {
    object: 'organization',
    ...datedResource(organization),
    ...clerkFields(organization, 'name', 'slug', 'adminDeleteEnabled', 'publicMetadata'),
    image_url: imageUrl(organization, organization.name),
    has_image: organization.imageUrl !== null,
    members_count: memberships.where('organizationId', organization.id).length,
    pending_invitations_count: invitations.filter((each) => invitationStatus(instance, each) === 'pending')
      .length,
    max_allowed_memberships: organization.maxMemberships,
  };
}

const partsOf = ({ store }: Instance, { userId, organizationId }: Membership) => ({
  user: store.users.get(userId),
  organization: store.organizations.get(organizationId),
});

/** A membership in responses of the Backend API and in events. */
export function membershipResource(instance: Instance, membership: Membership): Resource {
  const { user, organization } = partsOf(instance, membership);
  const more = user && { profile_image_url: userImage(user), username: user.username };
  return {
    ...publicMembershipResource(instance, membership),
    public_user_data: user && { ...publicUserData(user), ...more },
    private_metadata: membership.privateMetadata,
    organization: organization && organizationResource(instance, organization),
  };
}

/** A membership in responses of the Frontend API. */
export function publicMembershipResource(instance: Instance, membership: Membership): Resource {
  const { user, organization } = partsOf(instance, membership);
  return {
    object: 'organization_membership',
    ...datedResource(membership),
    ...clerkFields(membership, 'role', 'publicMetadata'),
    role_name: roleName(membership.role),
    permissions: permissionsOf(instance, membership.role),
    organization: organization && publicOrganizationResource(instance, organization),
    public_user_data: user && publicUserData(user),
  };
}

/** An invitation in responses of the Backend API and in events. */
export function invitationResource(instance: Instance, invitation: OrganizationInvitation): Resource {
  const inviter = instance.store.users.get(invitation.inviterId ?? '');
  return {
    ...publicInvitationResource(invitation),
    status: invitationStatus(instance, invitation),
    ...clerkFields(invitation, 'privateMetadata', 'inviterId'),
    public_inviter_data: inviter ? publicUserData(inviter) : null,
  };
}

/** The fields of an organization that users see who are invited to it. */
export function publicOrganizationData({ store }: Instance, row: { readonly organizationId: string }) {
  const { organizationId: id } = row;
  const { name = '', slug, imageUrl: image = null } = store.organizations.get(id) ?? {};
  return { id, name, slug, image_url: imageUrl({ id, imageUrl: image }, name), has_image: image !== null };
}

/** A domain in events and in responses of both APIs. */
export function domainResource(instance: Instance, domain: OrganizationDomain): Resource {
  const status = domain.verified ? 'verified' : 'unverified';
  const verification = { status, strategy: 'admin', attempts: null, expire_at: null, verified_at: null };
  return {
    object: 'organization_domain',
    ...datedResource(domain),
    ...clerkFields(domain, 'organizationId', 'name', 'enrollmentMode'),
    affiliation_email_address: null,
    affiliation_verification: verification,
    ownership_verification: null,
    verification,
    total_pending_invitations: 0,
    total_pending_suggestions: 0,
    public_organization_data: publicOrganizationData(instance, domain),
  };
}

/** An invitation in responses of the Frontend API. */
export function publicInvitationResource(invitation: OrganizationInvitation): Resource {
  return {
    object: 'organization_invitation',
    ...datedResource(invitation),
    ...clerkFields(invitation, 'organizationId', 'role', 'status', 'publicMetadata'),
    email_address: invitation.email,
    role_name: roleName(invitation.role),
    // The emulator mails no links, so `notify` and `redirect_url` of a request have no effect.
    url: null,
    expires_at: invitation.expireAt,
  };
}

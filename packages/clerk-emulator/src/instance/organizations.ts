import { ApiError, notFound, requireFound } from './api-error';
import { DAY_SECONDS } from './clock';
import { Membership, Organization, OrganizationInvitation, type Session, type User } from './data';
import { isVerified, userByIdentifier } from './identifiers';
import { newRow } from './ids';
import type { Instance } from './instance';
import {
  invitationResource,
  membershipResource,
  organizationResource,
  roleResources,
} from './organization-resources';
import { invitationStatus } from './resources';

export const ADMIN = 'org:admin';
const INVITATION_DAYS = 30;

type OwnMetadata = Partial<Pick<Membership, 'publicMetadata' | 'privateMetadata'>>;
type NewInvitation = Pick<OrganizationInvitation, 'email' | 'role' | 'inviterId'> &
  OwnMetadata & { readonly days?: number | null | undefined };

/** Fields that a request may set. */
export type OrganizationFields = Partial<Omit<Organization, 'createdBy' | 'updatedAt'>>;

/** Creates an organization, with its creator as an admin, and sends its event. Throws a 422 if the slug is taken. */
export function createOrganization(
  instance: Instance,
  { name, creator, slug, ...fields }: OrganizationFields & { name: string; creator: User | undefined },
): Organization {
  const { organizations } = instance.store;
  const row = newRow(instance, 'org');
  const named = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  const isTaken = organizations.where('slug', named).length > 0;
  const made = named === '' || isTaken ? `${named}-${row.id.slice(-8).toLowerCase()}` : named;
  if (slug !== undefined) requireFreeSlug(instance, slug);
  const own = { name, slug: slug ?? made, createdBy: creator?.id ?? null };
  const organization = organizations.put(Organization.parse({ ...row, ...fields, ...own }));
  instance.webhooks.send('organization.created', organizationResource(instance, organization));
  if (creator) addMember(instance, organization, { user: creator, role: ADMIN });
  return organization;
}

/** Changes an organization and sends `organization.updated`. Throws a 422 if the new slug is taken. */
export function updateOrganization(
  instance: Instance,
  organization: Organization,
  changes: OrganizationFields,
): Organization {
  if (changes.slug !== undefined && changes.slug !== organization.slug)
    requireFreeSlug(instance, changes.slug);
  const updatedAt = instance.clock.now();
  const updated = instance.store.organizations.put({ ...organization, ...changes, updatedAt });
  instance.webhooks.send('organization.updated', organizationResource(instance, updated));
  return updated;
}

/** Deletes an organization, its memberships and its domains, and sends `organization.deleted`. Returns the data of the event. */
export function deleteOrganization(instance: Instance, organization: Organization) {
  const { organizations, organizationDomains } = instance.store;
  for (const membership of membersOf(instance, organization)) removeMember(instance, membership);
  for (const { id } of organizationDomains.where('organizationId', organization.id))
    organizationDomains.delete(id);
  organizations.delete(organization.id);
  const resource = deletedResource(organization.id, 'organization');
  instance.webhooks.send('organization.deleted', resource);
  return resource;
}

export const deletedResource = (id: string, object: string) => ({ id, object, deleted: true });

/** Makes a user a member and sends `organizationMembership.created`. Throws as `requirePlace` does. */
export function addMember(
  instance: Instance,
  organization: Organization,
  { user, role, ...metadata }: { user: User; role: string } & OwnMetadata,
): Membership {
  requirePlace(instance, organization, { user, role }, 'user_id');
  const ids = { organizationId: organization.id, userId: user.id };
  const row = { ...newRow(instance, 'orgmem'), ...ids, role, ...metadata };
  const membership = instance.store.memberships.put(Membership.parse(row));
  instance.webhooks.send('organizationMembership.created', membershipResource(instance, membership));
  return membership;
}

/** Throws a 404 for an unknown role, a 400 for a member, and a 403 if members and invited ones reach the limit. */
export function updateMember(
  instance: Instance,
  membership: Membership,
  changes: Partial<Pick<Membership, 'role' | 'publicMetadata' | 'privateMetadata'>>,
): Membership {
  requireRole(instance, changes.role ?? membership.role);
  if (changes.role !== undefined && changes.role !== ADMIN) requireOtherAdmin(instance, membership);
  const updatedAt = instance.clock.now();
  const updated = instance.store.memberships.put({ ...membership, ...changes, updatedAt });
  instance.webhooks.send('organizationMembership.updated', membershipResource(instance, updated));
  return updated;
}

/** Ends a membership, also as the active organization of sessions, and sends its event, whose data it returns. */
export function removeMember(instance: Instance, membership: Membership) {
  const { userId, organizationId } = membership;
  const { memberships, sessions } = instance.store;
  const resource = membershipResource(instance, membership);
  memberships.delete(membership.id);
  for (const session of sessions.where('userId', userId))
    if (session.organizationId === organizationId) sessions.put({ ...session, organizationId: null });
  instance.webhooks.send('organizationMembership.deleted', resource);
  return resource;
}

/**
 * Invites e-mail addresses and sends `organizationInvitation.created` for each. Throws as `requirePlace` does, and a 400 if an
 * address has a pending invitation or occurs twice. Then it invites none of them.
 */
export function inviteToOrganization(
  instance: Instance,
  organization: Organization,
  inputs: readonly NewInvitation[],
): OrganizationInvitation[] {
  const invited = new Set(pendingInvitations(instance, organization).map(({ email }) => email));
  for (const { email, role } of inputs) {
    if (invited.has(email)) {
      const message = `There are already pending invitations for the following email addresses: ${email}`;
      throw new ApiError(400, 'duplicate_record', message, 'email_address', { email_addresses: [email] });
    }
    const user = userByIdentifier(instance, email);
    requirePlace(instance, organization, { user, role }, 'email_address', invited.size);
    invited.add(email);
  }
  return inputs.map(({ days, ...input }) => {
    const row = newRow(instance, 'orginv');
    const expireAt = row.createdAt + (days ?? INVITATION_DAYS) * DAY_SECONDS * 1000;
    const own = { ...input, organizationId: organization.id, status: 'pending', expireAt };
    const invitation = instance.store.organizationInvitations.put(
      OrganizationInvitation.parse({ ...row, ...own }),
    );
    instance.webhooks.send('organizationInvitation.created', invitationResource(instance, invitation));
    return invitation;
  });
}

/** Returns the invitations of an organization that can be accepted, oldest first. */
export function pendingInvitations(instance: Instance, { id }: Organization): OrganizationInvitation[] {
  const invitations = instance.store.organizationInvitations.where('organizationId', id);
  return invitations.filter((each) => invitationStatus(instance, each) === 'pending');
}

/** Returns the invitations of the verified addresses of a user to organizations, oldest first. */
export function invitationsTo({ store }: Instance, { emails }: User): OrganizationInvitation[] {
  const own = new Set(emails.filter(isVerified).map(({ value }) => value));
  return store.organizationInvitations.all().filter(({ email }) => own.has(email));
}

/**
 * Sets the status of a pending invitation and sends `organizationInvitation.accepted` or `.revoked`. Throws a 400 if the
 * invitation is not pending. Clerk's document requires a field `data` in the data of the first event. Its example lacks it.
 */
export function closeInvitation(
  instance: Instance,
  invitation: OrganizationInvitation,
  status: 'accepted' | 'revoked',
  acceptedBy?: User,
): OrganizationInvitation {
  const before = invitationStatus(instance, invitation);
  if (before !== 'pending') {
    const message = `The invitation is already ${before}.`;
    throw new ApiError(400, 'organization_invitation_not_pending', message);
  }
  const updatedAt = instance.clock.now();
  const closed = instance.store.organizationInvitations.put({ ...invitation, status, updatedAt });
  const resource = { ...invitationResource(instance, closed), ...(acceptedBy && { user_id: acceptedBy.id }) };
  instance.webhooks.send(`organizationInvitation.${status}`, resource);
  return closed;
}

/** Finds an organization by id or slug. Throws a 404 if there is none. */
export function requireOrganization({ store }: Instance, idOrSlug: string): Organization {
  const { organizations } = store;
  const found = organizations.get(idOrSlug) ?? organizations.find(({ slug }) => slug === idOrSlug);
  return requireFound(found, `Organization ${idOrSlug}`);
}

/** Returns the id of an organization of a user, by id or slug, or undefined if the user is not a member of it. */
export function findOwnOrganization(
  { store }: Instance,
  userId: string,
  idOrSlug: string,
): string | undefined {
  const isWanted = (id: string) => id === idOrSlug || store.organizations.get(id)?.slug === idOrSlug;
  return store.memberships.where('userId', userId).find((each) => isWanted(each.organizationId))
    ?.organizationId;
}

/** Returns an id as `findOwnOrganization` does. Throws Clerk's 403 if the user is not a member. */
export function ownOrganization(instance: Instance, userId: string, idOrSlug: string): string {
  const id = findOwnOrganization(instance, userId, idOrSlug);
  if (id !== undefined) return id;
  const message = "Given organization not found, or you don't have permission to access it.";
  throw new ApiError(403, 'organization_not_found_or_unauthorized', message);
}

/** Returns the active organization that a request selects. An empty one is the personal account, and undefined changes nothing. */
export function activeOrganization(
  instance: Instance,
  { userId, organizationId }: Session,
  requested: string | undefined,
): string | null {
  if (requested === undefined) return organizationId;
  return requested === '' ? null : ownOrganization(instance, userId, requested);
}

/** Returns the memberships of an organization, oldest first. */
export const membersOf = ({ store }: Instance, { id }: Organization): Membership[] =>
  store.memberships.where('organizationId', id);

/** Returns the memberships of a user, oldest first. */
export const membershipsOf = ({ store }: Instance, { id }: User): Membership[] =>
  store.memberships.where('userId', id);

export const findMembership = (instance: Instance, organization: Organization, userId: string) =>
  membersOf(instance, organization).find((each) => each.userId === userId);

/** Throws Clerk's 400 if the member is the only admin of the organization. */
export function requireOtherAdmin({ store }: Instance, { id, organizationId, role }: Membership): void {
  const members = store.memberships.where('organizationId', organizationId);
  if (role !== ADMIN || members.some((each) => each.role === ADMIN && each.id !== id)) return;
  const message = 'There has to be at least one organization member with the minimum required permissions.';
  throw new ApiError(400, 'organization_minimum_permissions_needed', message);
}

/** Returns the membership of a user. Throws a 404 if the user is not a member. */
export const requireMembership = (instance: Instance, organization: Organization, userId: string) =>
  requireFound(findMembership(instance, organization, userId), `Membership of ${userId}`);

/**
 * Throws a 404 for an unknown role, a 400 if the user is a member, and a 403 if the members and the invited ones reach the limit
 * of the organization.
 */
function requirePlace(
  instance: Instance,
  organization: Organization,
  { user, role }: { readonly user: User | undefined; readonly role: string },
  parameter: string,
  invited = 0,
): void {
  requireRole(instance, role);
  const { maxMemberships } = organization;
  if (user && findMembership(instance, organization, user.id)) {
    throw new ApiError(400, 'already_a_member_in_organization', 'The user is already a member.', parameter);
  }
  if (maxMemberships === 0 || membersOf(instance, organization).length + invited < maxMemberships) return;
  const message = `You have reached your limit of ${maxMemberships} organization memberships, including outstanding invitations.`;
  throw new ApiError(403, 'organization_membership_quota_exceeded', message);
}

function requireRole(instance: Instance, role: string): void {
  if (roleResources(instance).every(({ key }) => key !== role)) throw notFound(`The role ${role}`);
}

function requireFreeSlug({ store }: Instance, slug: string): void {
  if (store.organizations.where('slug', slug).length === 0) return;
  const message = `The slug ${slug} is already taken. Please choose another.`;
  throw new ApiError(422, 'form_identifier_exists', message, 'slug');
}

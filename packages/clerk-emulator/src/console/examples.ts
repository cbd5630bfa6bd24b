import type { Membership, Organization, Session, User } from '../instance/data';
import { notFound } from '../instance/error';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { membershipResource, organizationResource } from '../instance/organization-resources';
import { ADMIN, deletedResource } from '../instance/organizations';
import { deletedUserResource, sessionEventResource, userResource } from '../instance/resources';

/** Returns example data for a type of event. Its user does not exist. Throws a 404 for a type without an example. */
export function exampleEventData(instance: Instance, type: string): Record<string, unknown> {
  const now = instance.clock.now();
  const email = 'example@example.com';
  const user: User = {
    id: newId('user'),
    email,
    emails: [{ id: newId('idn'), value: email }],
    phones: [],
    wallets: [],
    username: null,
    firstName: 'Example',
    lastName: 'Example',
    externalId: null,
    password: null,
    passwordUpdatedAt: null,
    publicMetadata: {},
    privateMetadata: {},
    unsafeMetadata: {},
    lastSignInAt: null,
    banned: false,
    locked: false,
    createdAt: now,
    updatedAt: now,
  };
  const session: Session = {
    id: newId('sess'),
    userId: user.id,
    clientId: newId('client'),
    organizationId: null,
    status: 'active',
    lastActiveAt: now,
    expireAt: now,
    createdAt: now,
    updatedAt: now,
  };
  const organization: Organization = {
    id: newId('org'),
    name: 'Example',
    slug: 'example',
    createdBy: user.id,
    maxMemberships: 5,
    publicMetadata: {},
    privateMetadata: {},
    createdAt: now,
    updatedAt: now,
  };
  const membership: Membership = {
    id: newId('orgmem'),
    organizationId: organization.id,
    userId: user.id,
    role: ADMIN,
    publicMetadata: {},
    privateMetadata: {},
    createdAt: now,
    updatedAt: now,
  };
  const parts = { user, organization };
  const examples = new Map([
    ['organization.created', organizationResource(instance, organization)],
    ['organization.updated', organizationResource(instance, organization)],
    ['organization.deleted', deletedResource(organization.id, 'organization')],
    ['organizationMembership.created', membershipResource(instance, membership, parts)],
    ['organizationMembership.updated', membershipResource(instance, membership, parts)],
    ['organizationMembership.deleted', membershipResource(instance, membership, parts)],
    ['user.created', userResource(user)],
    ['user.updated', userResource(user)],
    ['user.deleted', deletedUserResource(user)],
    ['session.created', sessionEventResource(session, user)],
  ]);
  const example = examples.get(type);
  if (example === undefined) throw notFound(`An example of ${type}`);
  return example;
}

import { z } from 'zod';
import { type ApiRequest, pageOf, parse, type Routes } from '../http';
import { requireUser } from '../instance/accounts';
import type { Membership } from '../instance/data';
import type { Instance } from '../instance/instance';
import { membershipResource } from '../instance/organization-resources';
import {
  addMember,
  membersOf,
  removeMember,
  requireMembership,
  requireOrganization,
  updateMember,
} from '../instance/organizations';
import { describeList } from './lists';
import { changedMetadata, mergedMetadata, OwnMetadata } from './metadata';
import { USER_FILTERS, userFields } from './user-fields';

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
    'PATCH /v1/organizations/:id/memberships/:otherId': ({ id, otherId, body }) => {
      return member(updateMember(instance, requireMember(id, otherId), parse(UpdateMember, body)));
    },
    'PATCH /v1/organizations/:id/memberships/:otherId/metadata': ({ id, otherId, body }) => {
      const membership = requireMember(id, otherId);
      return member(updateMember(instance, membership, mergedMetadata(membership, body)));
    },
    'DELETE /v1/organizations/:id/memberships/:otherId': ({ id, otherId }) => {
      return removeMember(instance, requireMember(id, otherId));
    },
  };
}

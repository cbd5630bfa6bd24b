import { z } from 'zod';
import { type ApiRequest, pageOf, parse, type Routes } from '../http';
import { requireUser } from '../instance/accounts';
import type { Organization } from '../instance/data';
import type { Instance } from '../instance/instance';
import { organizationResource } from '../instance/organization-resources';
import {
  ADMIN,
  createOrganization,
  deleteOrganization,
  membersOf,
  requireOrganization,
  updateOrganization,
} from '../instance/organizations';
import { describeList } from './lists';
import { changedMetadata, mergedMetadata, OwnMetadata } from './metadata';

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
      const creator = created_by ? requireUser(instance, created_by) : undefined;
      return shown(createOrganization(instance, { name, creator, ...organizationChanges(fields) }));
    },
    'GET /v1/organizations': ({ url }) =>
      pageOf(url, selectOrganizations(organizations.all(), url), (row) => including(url, row)),
    'GET /v1/organizations/:id': ({ id, url }) => including(url, find(id)),
    'PATCH /v1/organizations/:id': ({ id, body }) => {
      const { name, ...fields } = parse(UpdateOrganization, body);
      return shown(
        updateOrganization(instance, find(id), { ...organizationChanges(fields), ...(name && { name }) }),
      );
    },
    'PATCH /v1/organizations/:id/metadata': ({ id, body }) =>
      shown(updateOrganization(instance, find(id), mergedMetadata(find(id), body))),
    'PUT /v1/organizations/:id/metadata': ({ id, body }) =>
      shown(updateOrganization(instance, find(id), changedMetadata(parse(OwnMetadata, body)))),
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

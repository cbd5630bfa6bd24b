import { z } from 'zod';
import { type ApiRequest, pageOf, parse, type Routes } from '../http';
import { ApiError, requireFound } from '../instance/api-error';
import { OrganizationDomain } from '../instance/data';
import { newRow } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { domainResource } from '../instance/organization-resources';
import { deletedResource, requireOrganization } from '../instance/organizations';
import type { Resource } from '../instance/resources';
import { describeList } from './lists';

const Changes = {
  enrollment_mode: OrganizationDomain.shape.enrollmentMode.nullish(),
  verified: z.boolean().nullish(),
};
const UpdateDomain = z.object(Changes);
const CreateDomain = z.strictObject({ name: z.string().toLowerCase().regex(z.regexes.domain), ...Changes });

/** The list of an organization accepts all parameters of the list of the instance. */
const selectDomains = describeList<OrganizationDomain>({
  fields: {
    organization_id: ({ organizationId }) => [organizationId],
    verified: ({ verified }) => [String(verified)],
    enrollment_mode: ({ enrollmentMode }) => [enrollmentMode],
    query: ({ name, organizationId }) => [name, organizationId],
    domains: ({ name }) => [name],
    name: ({ name }) => [name],
  },
  filters: 'organization_id verified enrollment_mode query domains',
  orders: 'name created_at',
});

/** Returns the Backend API routes for the domains of organizations. */
export function organizationDomainRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const { organizationDomains: domains } = instance.store;
  const shown = (domain: OrganizationDomain) => domainResource(instance, domain);
  const domainsOf = (id: string) => domains.where('organizationId', requireOrganization(instance, id).id);
  const find = ({ id, otherId }: ApiRequest) => {
    const found = domainsOf(id).find((each) => each.id === otherId);
    return requireFound(found, `The domain ${otherId}`);
  };
  const send = (change: string, resource: Resource) => {
    instance.webhooks.send(`organizationDomain.${change}`, resource);
    return resource;
  };
  return {
    'GET /v1/organization_domains': ({ url }) => pageOf(url, selectDomains(domains.all(), url), shown),
    'GET /v1/organizations/:id/domains': ({ id, url }) =>
      pageOf(url, selectDomains(domainsOf(id), url), shown),
    'POST /v1/organizations/:id/domains': ({ id, body }) => {
      const { name, enrollment_mode, verified } = parse(CreateDomain, body);
      const { id: organizationId } = requireOrganization(instance, id);
      if (domains.where('name', name).length > 0)
        throw new ApiError(400, 'duplicate_record', `The domain ${name} is already in use.`, 'name');
      const enrollmentMode = enrollment_mode ?? 'manual_invitation';
      const row = { ...newRow(instance, 'orgdmn'), organizationId, name, enrollmentMode };
      return send('created', shown(domains.put({ ...row, verified: verified ?? true })));
    },
    'PATCH /v1/organizations/:id/domains/:otherId': (request) => {
      const domain = find(request);
      const input = parse(UpdateDomain, request.body);
      const verified = input.verified ?? domain.verified;
      const enrollmentMode = input.enrollment_mode ?? domain.enrollmentMode;
      const updatedAt = instance.clock.now();
      return send('updated', shown(domains.put({ ...domain, verified, enrollmentMode, updatedAt })));
    },
    'DELETE /v1/organizations/:id/domains/:otherId': (request) => {
      const { id } = find(request);
      domains.delete(id);
      return send('deleted', deletedResource(id, 'organization_domain'));
    },
  };
}

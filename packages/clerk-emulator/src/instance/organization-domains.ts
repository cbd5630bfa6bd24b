import { z } from 'zod';
import { Dated } from './data';
import type { Instance } from './instance';
import { publicOrganizationData } from './organization-resources';
import { clerkFields, datedResource, type Resource } from './resources';

/** A domain of an organization. Its enrollment mode has no effect, because the emulator invites no users by their addresses. */
export const OrganizationDomain = z.object({
  ...Dated,
  organizationId: z.string(),
  name: z.string(),
  enrollmentMode: z.enum([
    'manual_invitation',
    'automatic_invitation',
    'automatic_suggestion',
    'enterprise_sso',
  ]),
  verified: z.boolean(),
});
export type OrganizationDomain = Readonly<z.infer<typeof OrganizationDomain>>;

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

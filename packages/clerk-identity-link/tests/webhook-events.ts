import type { WebhookHandlers } from '../src/index';

/** Reads `data` of eight events. `tsc` compiles it here, and in each host with the version of Clerk that the host has. */
export const HANDLERS: WebhookHandlers = {
  'user.created': async ({ first_name }) => first_name?.length,
  'user.updated': async (data) => data.email_addresses.map(({ email_address }) => email_address.length),
  'user.deleted': async ({ id }) => id?.length,
  'session.created': async (data) => data.user_id.length,
  'email.created': async ({ to_email_address }) => to_email_address?.length,
  'organization.created': async ({ name, slug }) => name.length + (slug?.length ?? 0),
  'organization.deleted': async ({ deleted }) => deleted === true,
  'organizationMembership.created': async (data) => data.public_user_data.user_id.length,
};

import type { EventHandlers } from '#lib/webhook';
import { forgetDeletedOrganization } from './forget-deleted-organization';

/** Handlers of verified webhook events. Each key is the event type that its handler receives. */
export const events: EventHandlers = {
  'organization.deleted': forgetDeletedOrganization,
};

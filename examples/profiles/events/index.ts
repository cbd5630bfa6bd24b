import type { EventHandlers } from '#lib/webhook';
import { saveProfile } from './save-profile';

/** Handlers of verified webhook events. Each key is the event type that its handler receives. */
export const events: EventHandlers = {
  'user.created': saveProfile,
  'user.updated': saveProfile,
};

import type { EventHandlers } from '#lib/webhook';
import { userDeleted } from './user-deleted';

/** Handlers of verified webhook events. Each key is the event type that its handler receives. */
export const events: EventHandlers = {
  'user.deleted': userDeleted,
};

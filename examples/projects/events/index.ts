import type { EventHandlers } from '#lib/events';
import { userDeleted } from './user-deleted';

/** Handlers of verified webhook events. A key is the type of the events. */
export const events: EventHandlers = {
  'user.deleted': userDeleted,
};

import type { EventHandlers } from '#lib/events';
import { userDeleted } from './user-deleted';

/** Handlers of verified webhook events by their type. */
export const events: EventHandlers = {
  'user.deleted': userDeleted,
};

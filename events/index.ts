import type { EventHandlers } from '#lib/events';

/**
 * Handlers of verified webhook events by their type, for example `'user.deleted': defineEvent(schema, handle)`. The service
 * itself registers the user of `user.created`. Any other event without a handler has no effect. docs/build.md has an example.
 */
export const events: EventHandlers = {};

import type { EventHandlers } from '#lib/webhook';

/**
 * Maps the type of a verified webhook event to the handler, for example `'user.deleted': defineEvent(schema, handle)`.
 * `user.created` does not need a handler, because the service itself registers the new user. An event of any other type has no
 * effect without a handler. docs/build.md has an example.
 */
export const events: EventHandlers = {};

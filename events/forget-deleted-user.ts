import { DeletedResource, defineEvent } from '#lib/events';
import { scheduleDeletion } from '#lib/operator/pending-deletions';

/** Holding period in hours. Until it ends, an operator can cancel the deletion of a user who was deleted by mistake. */
const HOURS = 24;

/**
 * Handler for `user.deleted`, the event that a user was deleted at the identity provider. Schedules the deletion of the user in
 * this service. After the holding period, `npm run users -- due` deletes the user (docs/users.md). The handler runs
 * only if events/index.ts contains it.
 */
export const forgetDeletedUser = defineEvent(DeletedResource, async ({ id }, { transaction }) => {
  if (id) await scheduleDeletion('user', transaction, id, HOURS);
});

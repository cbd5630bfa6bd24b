import * as z from 'zod/mini';
import { IdentityProviderUserId } from '#lib/api/schemas';
import { defineEvent } from '#lib/events';
import { scheduleDeletion } from '#lib/operator/pending-deletions';

/** Holding period in hours. Until it ends, an operator can cancel the deletion of a user who was deleted by mistake. */
const HOURS = 24;

/**
 * Handler for `user.deleted`, the event that a user was deleted at the identity provider. Schedules the deletion of the user in
 * this service. After the holding period, `npm run users -- due` deletes the user (docs/users.md). The handler runs
 * only if events/index.ts contains it.
 */
export const forgetDeletedUser = defineEvent(
  z.object({ id: IdentityProviderUserId }),
  ({ id }, { transaction }) => scheduleDeletion('user', transaction, id, HOURS),
);

import * as z from 'zod/mini';
import { IdentityProviderUserId } from '#lib/api/schemas';
import { defineEvent } from '#lib/events';
import { scheduleDeletion } from '#lib/users/pending-deletions';

/** Holding period in hours. An accident at the provider can be undone until it ends. */
const HOURS = 24;

/** Makes `npm run users:forget -- --due` forget a user whom the provider has deleted (docs/users.md). */
export const forgetDeletedUser = defineEvent(
  z.object({ id: IdentityProviderUserId }),
  ({ id }, { transaction }) => scheduleDeletion(transaction, id, HOURS),
);

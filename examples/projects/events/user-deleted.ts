import * as z from 'zod/mini';
import { IdentityProviderUserId } from '#lib/api/schemas';
import { defineEvent } from '#lib/events';
import { deleteNotes } from '#lib/tables/project-notes';
import { deleteMemberships } from '#lib/tables/projects';

/**
 * Deletes the notes and the memberships of a user whom the identity provider has deleted. `deleteMemberships` also deletes each
 * project that had no other member. A repeated event has no effect.
 */
export const userDeleted = defineEvent(
  z.object({ id: IdentityProviderUserId }),
  async ({ id }, { transaction }) => {
    await deleteNotes(transaction, id);
    await deleteMemberships(transaction, id);
  },
);

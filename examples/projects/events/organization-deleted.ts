import * as z from 'zod/mini';
import { MAX_ID_LENGTH } from '#lib/api/input';
import { text } from '#lib/api/text';
import { defineEvent } from '#lib/events';
import { deleteProjects } from '#lib/tables/projects';

/** Deletes the projects of an organization that the identity provider has deleted. A repeated event has no effect. */
export const organizationDeleted = defineEvent(
  z.object({ id: text('id', MAX_ID_LENGTH) }),
  async ({ id }, { transaction }) => deleteProjects(transaction, id),
);

import { DeletedResource, defineEvent } from '#lib/events';
import { uncache } from '#lib/ids/cache';
import { scheduleDeletion } from '#lib/operator/pending-deletions';
import { allIdsOf, findRows } from '#lib/operator/rows';

/** Holding period in hours. Until it ends, an operator can cancel the deletion of an organization. */
const HOURS = 24;

/**
 * Handler for `organization.deleted`, the event that an organization was deleted at the identity provider. From then on, its
 * requests get a 403. After the holding period, `npm run tenants -- due` deletes the tenant (docs/users.md). The handler runs
 * only if events/index.ts contains it.
 */
export const forgetDeletedOrganization = defineEvent(
  DeletedResource,
  async ({ id }, { transaction }) => {
    if (id) await scheduleDeletion('tenant', transaction, id, HOURS);
  },
  async ({ id }) => {
    if (!id) return;
    const [link] = await findRows('tenant', id);
    // A previous id is not the organization that the tenant has now.
    await uncache('tenant', link?.providerId === id ? allIdsOf(link) : [id]);
  },
);

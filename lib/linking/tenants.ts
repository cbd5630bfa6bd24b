import { v7 as uuidV7 } from 'uuid';
import * as z from 'zod/mini';

const database = async () => (await import('../storage/database')).database();

const Tenants = z.array(z.object({ id: z.guid() }));

/** Returns the id of the tenant of an organization, or undefined if there is none. */
async function findTenant(organizationId: string): Promise<string | undefined> {
  const found = await (await database()).$queryRaw`SELECT id FROM public.tenants
    WHERE identity_provider_organization_id = ${organizationId}`;
  return Tenants.parse(found)[0]?.id;
}

/** Inserts the tenant of an organization and returns its id. Returns undefined if there is one. */
async function insertTenant(organizationId: string): Promise<string | undefined> {
  const inserted = await (await database())
    .$queryRaw`INSERT INTO public.tenants (id, identity_provider_organization_id)
    VALUES (${uuidV7()}::uuid, ${organizationId})
    ON CONFLICT (identity_provider_organization_id) DO NOTHING
    RETURNING id`;
  return Tenants.parse(inserted)[0]?.id;
}

/**
 * Returns the id of the tenant of an organization. Inserts the tenant if there is none. The unique key prevents a second one,
 * even in a race between processes. Runs one statement for an existing tenant and two for a new one. Passes database errors
 * through.
 */
export async function findOrInsertTenant(organizationId: string): Promise<string> {
  const tenantId =
    (await findTenant(organizationId)) ??
    (await insertTenant(organizationId)) ??
    // Another call has inserted the tenant.
    (await findTenant(organizationId));
  if (tenantId === undefined) throw new Error('A tenant was neither found nor inserted');
  return tenantId;
}

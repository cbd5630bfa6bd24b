import { ORGANIZATION_ID, otherTenantColumns, TENANT_ID, tenants } from '../identity-link.config';
import { withinRegistrationTime } from './register';

async function findOrInsert(organizationId: string): Promise<string> {
  const [where, select] = [{ [ORGANIZATION_ID]: organizationId }, { [TENANT_ID]: true } as const];
  const found = await tenants().findUnique({ where, select });
  if (found) return found[TENANT_ID].toString();
  const create = { ...where, ...(await otherTenantColumns(organizationId)) };
  // In a race, returns the row of the other call, which it does not change.
  const row = await tenants().upsert({ where, create, update: where, select });
  return row[TENANT_ID].toString();
}

/** Returns the internal id of an organization, and inserts the row of a new one. Without a user, no statement runs. */
export async function resolveTenantId(
  organizationId: string,
  user: Promise<unknown>,
): Promise<string | undefined> {
  if ((await user) === undefined) return undefined;
  return withinRegistrationTime(() => findOrInsert(organizationId));
}

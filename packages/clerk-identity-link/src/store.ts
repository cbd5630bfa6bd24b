import type { Kind } from '#lib/ids/kinds';
import { configuration, type LinkTable } from './configuration';

export type { Kind };

/** Returns the table of a kind. Throws if the application has none. */
export function tableOf(kind: Kind): LinkTable {
  const { users, tenants } = configuration().tables;
  const table = kind === 'user' ? users : tenants;
  if (!table) throw new Error('Name the table of organizations: nextLink({ users, tenants }).');
  return table;
}

/** Returns the internal id of a user or an organization of Clerk. */
export const findLink = (kind: Kind, clerkId: string) => tableOf(kind).find(clerkId);

/** Inserts a row, and returns its internal id only to the call that inserted it. */
export const insertLink = (kind: Kind, clerkId: string, _issuedAt?: number) =>
  tableOf(kind).insert(clerkId, configuration());

/** Returns true for a user or an organization that gets no row. */
export const isForgotten = async (kind: Kind, clerkId: string, _issuedAt?: number) =>
  !(await tableOf(kind).exists(clerkId, configuration()));

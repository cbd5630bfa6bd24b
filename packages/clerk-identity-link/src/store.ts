import type { Kind } from '#lib/ids/kinds';
import { configuration, type LinkTable } from './configuration';

/** Returns the table of a kind. Throws if the application has none. */
function tableOf(kind: Kind): LinkTable {
  const { users, tenants } = configuration().tables;
  const table = kind === 'user' ? users : tenants;
  if (!table) throw new Error('Name the table of organizations: nextLink({ users, tenants }).');
  return table;
}

/** The link of an id of Clerk. An application forgets no id. */
export type Link =
  | { readonly state: 'linked'; readonly id: string }
  | { readonly state: 'forgotten' | 'none'; readonly id?: undefined };

export async function findLink(kind: Kind, clerkId: string): Promise<Link> {
  const id = await tableOf(kind).find(clerkId);
  return id === undefined ? { state: 'none' } : { state: 'linked', id };
}

/** Inserts a row, and returns its internal id only to the call that inserted it. */
export const insertLink = (kind: Kind, clerkId: string, _issuedAt?: number) =>
  tableOf(kind).insert(clerkId, configuration());

/** Returns true for a user or an organization that gets no row. */
export const isForgotten = async (kind: Kind, clerkId: string, _issuedAt?: number) =>
  !(await tableOf(kind).exists(clerkId, configuration()));

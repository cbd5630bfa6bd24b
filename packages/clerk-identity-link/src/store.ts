import { isLostRace } from '../../../lib/base/sql-state';
import type { Kind, Store } from '../../../lib/core/ports';
import type { LinkTable, Surroundings, Tables } from './configuration';

/** Returns the store of these tables. An application forgets no id. */
export function storeOf({ users, tenants }: Tables, surroundings: Surroundings): Store {
  function tableOf(kind: Kind): LinkTable {
    const table = kind === 'user' ? users : tenants;
    if (!table) throw new Error('Name the table of organizations: nextLink({ users, tenants }).');
    return table;
  }
  return {
    async find(kind, clerkId) {
      const id = await tableOf(kind).find(clerkId);
      if (id === null) return { state: 'forgotten' };
      return id === undefined ? { state: 'none' } : { state: 'linked', id };
    },
    insert: async (kind, clerkId, issuedAt) =>
      tableOf(kind).insert(clerkId, { ...surroundings, isVerified: issuedAt !== undefined }),
    isForgotten: async (kind, clerkId, issuedAt) =>
      !(await tableOf(kind).exists(clerkId, { ...surroundings, isVerified: issuedAt !== undefined })),
    isLostRace,
  };
}

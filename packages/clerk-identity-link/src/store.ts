import { isLostRace } from '../../../lib/base/sql-state';
import type { Kind, Store } from '../../../lib/core/ports';
import { fieldsOf } from '../../../lib/core/values';
import type { Configuration, LinkTable } from './configuration';

/** Returns the store of the tables. An application forgets no id. */
export function storeOf(configuration: Configuration): Store {
  function tableOf(kind: Kind): LinkTable {
    const table = configuration.tables[kind === 'user' ? 'users' : 'tenants'];
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
      tableOf(kind).insert(clerkId, { ...configuration, isVerified: issuedAt !== undefined }),
    isForgotten: async (kind, clerkId, issuedAt) =>
      !(await tableOf(kind).exists(clerkId, { ...configuration, isVerified: issuedAt !== undefined })),
    // Prisma has its own form of the SQLSTATE. In the error of `pg` it is the `code`, and Drizzle wraps that error since 0.44.
    isLostRace: (error) => [error, { meta: error }, { meta: fieldsOf(error)['cause'] }].some(isLostRace),
  };
}

import { and, eq, getTableColumns, isNull, or, type SQL, sql } from 'drizzle-orm';
import type { PgColumn, PgDatabase, PgQueryResultHKT, PgTable } from 'drizzle-orm/pg-core';
import { getTableConfig } from 'drizzle-orm/pg-core';
import { fieldsOf } from '../../../lib/core/values';
import type { LinkTable } from './configuration';
import type { FirstParameter, Found, LooseOptions, Needed, Options } from './table';
import { CALL_MS, linkTable } from './table';

/** `neon-http` is the driver with `batch`, and without transactions. */
type Http = { readonly batch: unknown };
type Inner<D> = D extends { transaction: infer F } ? FirstParameter<FirstParameter<F>> : never;
type Transaction<D> = D extends Http ? undefined : Inner<D>;
type Supported<D> = D extends Http ? { readonly claim?: never; readonly onInsert?: never } : unknown;

type Queries = Pick<PgDatabase<PgQueryResultHKT>, 'execute' | 'insert' | 'select' | 'update'>;
interface Client extends Queries {
  readonly $client?: unknown;
  transaction<A>(work: (transaction: Queries) => Promise<A>, options: object): Promise<A>;
}

/** Returns true if a unique key of the table consists of this column alone, for all rows. */
function isUnique(table: PgTable, { name, isUnique: isKey, primary }: PgColumn): boolean {
  const { indexes, uniqueConstraints } = getTableConfig(table);
  const unique = indexes.map(({ config }) => config).filter((index) => index.unique && !index.where);
  const namesOf = (columns: readonly object[]) => columns.map((each) => fieldsOf(each)['name']).join();
  return isKey || primary || [...uniqueConstraints, ...unique].some((key) => namesOf(key.columns) === name);
}

/**
 * Returns the table of a Drizzle table on PostgreSQL. Calls `database` at the first request, and not before. Throws if the column
 * of Clerk's id has no unique key.
 */
export function drizzleTable<
  D,
  T extends PgTable,
  L extends string,
  R extends Omit<T['$inferInsert'], L>,
  const K extends keyof Found = 'user',
>(
  database: () => D,
  table: T,
  options: Options<K, T['$inferSelect'], T['$inferInsert'], Transaction<D>, L, R, SQL> &
    Needed<T['$inferInsert'], L> &
    Supported<D>,
): LinkTable;
export function drizzleTable(
  database: () => Client,
  table: PgTable,
  options: LooseOptions<Queries | undefined, SQL>,
): LinkTable {
  const { claim, clerkId: name, onInsert, where = sql`true` } = options;
  const columns: Record<string, PgColumn> = getTableColumns(table);
  const columnOf = (key: string): PgColumn => {
    const found = columns[key];
    if (!found) throw new Error(`The Drizzle table has no column ${key}.`);
    return found;
  };
  const [id, column] = [columnOf(options.id), columnOf(name)];
  if (!isUnique(table, column)) throw new Error(`The column ${name} needs a unique key: .unique()`);
  const address = claim && columnOf(claim);
  const read = ([row]: readonly { readonly id: unknown }[]) => (row ? String(row.id) : undefined);
  return linkTable<Queries>(options, {
    rows: (transaction: Queries = database()) => ({
      async select(clerkId) {
        const isIncluded = sql<boolean>`coalesce(${where}, false)`;
        const rows = transaction.select({ id, isIncluded }).from(table);
        const [row] = await rows.where(eq(column, clerkId));
        return row && (row.isIncluded ? String(row.id) : null);
      },
      async candidates(addresses) {
        if (!address || addresses.length === 0) return [];
        const isSame = or(...addresses.map((each) => sql`lower(${address}) = lower(${each})`));
        const rows = transaction.select({ id, address, clerkId: column }).from(table);
        return rows.where(and(isSame, where));
      },
      async assign(row, clerkId) {
        const isUnchanged = row.clerkId === null ? isNull(column) : eq(column, row.clerkId);
        const isSame = address ? eq(address, row.address) : undefined;
        const update = transaction.update(table).set({ [name]: clerkId });
        return read(await update.where(and(eq(id, row.id), isUnchanged, isSame, where)).returning({ id }));
      },
      insertNew: async (row) =>
        read(await transaction.insert(table).values(row).onConflictDoNothing().returning({ id })),
      insertAgain: (row) => transaction.insert(table).values(row).onConflictDoNothing({ target: column }),
    }),
    async transaction(clerkId, work) {
      const client = database();
      // Of `pg` and its variants, a Client has them, and a Pool does not.
      if (fieldsOf(client.$client)['connectionParameters'])
        throw new Error('Pass a Pool to drizzle(): concurrent transactions need connections of their own.');
      let isBegun = false;
      const run = async (transaction: Queries) => {
        isBegun = true;
        await transaction.execute(sql`SELECT set_config('statement_timeout', ${String(CALL_MS)}, true)`);
        await transaction.execute(sql`SELECT pg_advisory_xact_lock(hashtextextended(${clerkId}, 0))`);
        // Code that goes on after the end must not use a connection that another request has by then.
        const { proxy, revoke } = Proxy.revocable(transaction, {});
        return work(proxy).finally(revoke);
      };
      try {
        return await client.transaction(run, { isolationLevel: 'read committed' });
      } catch (error) {
        if (isBegun || !/transactions.*support/i.test(String(error))) throw error;
        if (!claim && !onInsert) return work();
        const drivers = 'node-postgres, postgres-js, neon-serverless';
        throw new Error(`claim and onInsert need transactions. Drivers: ${drivers}.`, { cause: error });
      }
    },
  });
}

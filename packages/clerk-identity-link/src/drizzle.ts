import { and, eq, getTableColumns, isNull, sql } from 'drizzle-orm';
import type { PgColumn, PgDatabase, PgQueryResultHKT, PgTable } from 'drizzle-orm/pg-core';
import { fieldsOf } from '../../../lib/core/values';
import type { LinkTable } from './configuration';
import { type First, type Found, type LooseOptions, linkTable, type Needed, type Options } from './table';

type Transaction<D> = D extends { transaction: infer F } ? First<First<F>> : never;

type Database = Pick<PgDatabase<PgQueryResultHKT>, 'insert' | 'select' | 'update'>;
interface Client extends Database {
  transaction<A>(work: (transaction: Database) => Promise<A>): Promise<A>;
}

/** Drizzle wraps the error of the driver. Adds its SQLSTATE, by which a registration is repeated after a lost race. */
function throwWithState(error: Error): never {
  throw Object.assign(error, { meta: { code: fieldsOf(error.cause)['code'] } });
}

/** Returns the table of a Drizzle table on PostgreSQL. Calls `database` at the first request, and not before. */
export function drizzleTable<
  D,
  T extends PgTable,
  L extends string,
  R extends Omit<T['$inferInsert'], L>,
  const K extends keyof Found = 'user',
>(
  database: () => D,
  table: T,
  options: Options<K, T['$inferSelect'], T['$inferInsert'], Transaction<D>, L, R> &
    Needed<T['$inferInsert'], L>,
): LinkTable;
export function drizzleTable(
  database: () => Client,
  table: PgTable,
  { kind = 'user', claim, ...names }: LooseOptions<Database>,
): LinkTable {
  const columns: Record<string, PgColumn> = getTableColumns(table);
  const columnOf = (name: string): PgColumn => {
    const column = columns[name];
    if (!column) throw new Error(`The Drizzle table has no column ${name}.`);
    return column;
  };
  const [id, column] = [columnOf(names.id), columnOf(names.clerkId)];
  const read = ([row]: readonly { readonly id: unknown }[]) => (row ? String(row.id) : undefined);
  return linkTable(kind, names.clerkId, claim !== undefined, names, {
    find: async (clerkId) => read(await database().select({ id }).from(table).where(eq(column, clerkId))),
    transaction: (work) => database().transaction(work).catch(throwWithState),
    async candidates(transaction, addresses) {
      if (claim === undefined) return [];
      const address = columnOf(claim);
      const lower = sql.join(
        addresses.map((each) => sql`lower(${each})`),
        sql`, `,
      );
      const rows = transaction.select({ id, address, clerkId: column }).from(table);
      return rows.where(sql`lower(${address}) IN (${lower})`);
    },
    async take(transaction, row, clerkId) {
      const isUnchanged = row.clerkId === null ? isNull(column) : eq(column, row.clerkId);
      const update = transaction.update(table).set({ [names.clerkId]: clerkId });
      return read(await update.where(and(eq(id, row.id), isUnchanged)).returning({ id }));
    },
    async create(transaction, row, skipDuplicates) {
      const insert = transaction.insert(table).values(row);
      return read(await (skipDuplicates ? insert.onConflictDoNothing() : insert).returning({ id }));
    },
    repeat: (transaction, row) =>
      transaction.insert(table).values(row).onConflictDoNothing({ target: column }),
  });
}

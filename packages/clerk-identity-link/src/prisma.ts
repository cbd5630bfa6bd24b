import { fieldsOf } from '../../../lib/core/values';
import type { LinkTable } from './configuration';
import { type First, type Found, type LooseOptions, linkTable, type Needed, type Options } from './table';

/** The types that a client of Prisma has of a model. */
type TypesOf<D> = D extends { [key: symbol]: { types: infer T } } ? T : never;
type Row<D> = TypesOf<D> extends { payload: { scalars: infer S } } ? S : never;
type NewRow<D> =
  TypesOf<D> extends { operations: { createManyAndReturn: { args: { data: infer N } } } }
    ? Exclude<N, readonly unknown[]>
    : never;
type Model<C> = { [M in keyof C]: [TypesOf<C[M]>] extends [never] ? never : M }[keyof C] & string;
type Transaction<C> = C extends { $transaction: infer F } ? First<First<F>> : never;

interface Delegate {
  findUnique(query: object): PromiseLike<object | null>;
  findMany(query: object): PromiseLike<object[]>;
  updateMany(query: object): PromiseLike<{ readonly count: number }>;
  createManyAndReturn(query: object): PromiseLike<object[]>;
  upsert(query: object): PromiseLike<object>;
}
type Delegates = Readonly<Record<string, Delegate>>;
interface Client {
  $transaction<A>(work: (transaction: Delegates) => Promise<A>, limits: object): Promise<A>;
}

/** Milliseconds for which a transaction waits for a connection, and for its end: those that a registration may take. */
const LIMITS = { maxWait: 8_000, timeout: 8_000 };

/** Returns the table of a Prisma model. Calls `client` at the first request, and not before. */
export function prismaTable<
  C,
  M extends Model<C>,
  L extends string,
  R extends Omit<NewRow<C[M]>, L>,
  const K extends keyof Found = 'user',
>(
  client: () => C,
  model: M,
  options: Options<K, Row<C[M]>, NewRow<C[M]>, Transaction<C>, L, R> & Needed<NewRow<C[M]>, L>,
): LinkTable;
export function prismaTable(
  client: () => Client & Delegates,
  model: string,
  { kind = 'user', id, clerkId: column, claim, ...rules }: LooseOptions<Delegates>,
): LinkTable {
  const delegateOf = (models: Delegates): Delegate => {
    const delegate = models[model];
    if (!delegate) throw new Error(`The Prisma client has no model ${model}.`);
    return delegate;
  };
  const read = (row: object | null | undefined) => (row ? String(fieldsOf(row)[id]) : undefined);
  const select = { [id]: true };
  return linkTable(kind, column, claim !== undefined, rules, {
    find: async (clerkId) =>
      read(await delegateOf(client()).findUnique({ where: { [column]: clerkId }, select })),
    transaction: (work) => client().$transaction(work, LIMITS),
    async candidates(transaction, addresses) {
      if (claim === undefined) return [];
      const where = { [claim]: { in: addresses, mode: 'insensitive' } };
      const selected = { ...select, [claim]: true, [column]: true };
      const rows = await delegateOf(transaction).findMany({ where, select: selected });
      return rows.map(fieldsOf).map((row) => ({ id: row[id], address: row[claim], clerkId: row[column] }));
    },
    async take(transaction, row, clerkId) {
      const where = { [id]: row.id, [column]: row.clerkId };
      const { count } = await delegateOf(transaction).updateMany({ where, data: { [column]: clerkId } });
      return count === 1 ? String(row.id) : undefined;
    },
    create: async (transaction, row, skipDuplicates) =>
      read((await delegateOf(transaction).createManyAndReturn({ data: [row], skipDuplicates, select }))[0]),
    // PostgreSQL rejects the statement of an upsert without a unique key.
    repeat(transaction, row, clerkId) {
      const same = { [column]: clerkId };
      return delegateOf(transaction).upsert({ where: same, create: row, update: same, select });
    },
  });
}

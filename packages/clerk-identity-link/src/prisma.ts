import { fieldsOf } from '../../../lib/core/values';
import type { LinkTable } from './configuration';
import type { First, Found, LooseOptions, Needed, Options } from './table';
import { CALL_MS, linkTable } from './table';

/** The types that a client of Prisma has of a model. */
type TypesOf<D> = D extends { [key: symbol]: { types: infer T } } ? T : never;
type Row<D> = TypesOf<D> extends { payload: { scalars: infer S } } ? S : never;
type NewRow<D> =
  TypesOf<D> extends { operations: { createManyAndReturn: { args: { data: infer N } } } }
    ? Exclude<N, readonly unknown[]>
    : never;
type Filter<D> = TypesOf<D> extends { operations: { findFirst: { args: { where?: infer Q } } } } ? Q : never;
type UniqueFilter<D> =
  TypesOf<D> extends { operations: { findUnique: { args: { where: infer Q } } } } ? Q : never;
/** A column that `findUnique` accepts alone. */
type Unique<D, L extends string> = Record<L, string> extends UniqueFilter<D> ? L : never;
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
type Database = Delegates & {
  $executeRaw(statement: TemplateStringsArray, ...values: unknown[]): PromiseLike<unknown>;
};
interface Client {
  $transaction<A>(work: (transaction: Database) => Promise<A>, options: object): Promise<A>;
}

/** The limits (in milliseconds) are those of a registration, which ends a transaction earlier. */
const TRANSACTION = { maxWait: 8_000, timeout: 8_000, isolationLevel: 'ReadCommitted' };

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
  options: Options<K, Row<C[M]>, NewRow<C[M]>, Transaction<C>, L, R, Filter<C[M]>> &
    Needed<NewRow<C[M]>, L> & { readonly clerkId: Unique<C[M], L> },
): LinkTable;
export function prismaTable(
  client: () => Client & Delegates,
  model: string,
  options: LooseOptions<Database | undefined, object>,
): LinkTable {
  const { id, clerkId: column, claim: address = '', where } = options;
  const rows = (transaction: Delegates = client()): Delegate => {
    const delegate = transaction[model];
    if (!delegate) throw new Error(`The Prisma client has no model ${model}.`);
    return delegate;
  };
  const read = (row: object | null | undefined) => (row ? String(fieldsOf(row)[id]) : undefined);
  const select = { [id]: true };
  return linkTable<Database>(options, {
    async find(clerkId, transaction) {
      const [delegate, same] = [rows(transaction), { [column]: clerkId }];
      const included = where ? { ...same, AND: [where] } : same;
      const found = read(await delegate.findUnique({ where: included, select }));
      if (found !== undefined || !where) return found;
      return (await delegate.findUnique({ where: same, select })) ? null : undefined;
    },
    transaction: (clerkId, _isOptional, work) =>
      client().$transaction(async (transaction) => {
        await transaction.$executeRaw`SELECT set_config('statement_timeout', ${String(CALL_MS)}, true)`;
        await transaction.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended(${clerkId}, 0))`;
        return work(transaction);
      }, TRANSACTION),
    async candidates(addresses, transaction) {
      const isSame = { [address]: { in: addresses, mode: 'insensitive' } };
      const query = {
        where: { AND: [isSame, where ?? {}] },
        select: { ...select, [address]: true, [column]: true },
      };
      const found = (await rows(transaction).findMany(query)).map(fieldsOf);
      return found.map((row) => ({ id: row[id], address: row[address], clerkId: row[column] }));
    },
    async take(row, clerkId, transaction) {
      const same = { [id]: row.id, [column]: row.clerkId, [address]: row.address, AND: [where ?? {}] };
      const { count } = await rows(transaction).updateMany({ where: same, data: { [column]: clerkId } });
      return count === 1 ? String(row.id) : undefined;
    },
    insert: async (row, transaction) =>
      read((await rows(transaction).createManyAndReturn({ data: [row], skipDuplicates: true, select }))[0]),
    // PostgreSQL rejects the statement of an upsert without a unique key.
    repeat: (row, clerkId, transaction) =>
      rows(transaction).upsert({
        where: { [column]: clerkId },
        create: row,
        update: { [column]: clerkId },
        select,
      }),
  });
}

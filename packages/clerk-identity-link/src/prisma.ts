import { fieldsOf } from '../../../lib/core/values';
import type { LinkTable } from './configuration';
import type { FirstParameter, Found, LooseOptions, Needed, Options } from './table';
import { CALL_MS, linkTable } from './table';

/** The types that a client of Prisma has of a model. */
type TypesOf<D> = D extends { [key: symbol]: { types: infer T } } ? T : never;
type Row<D> = TypesOf<D> extends { payload: { scalars: infer S } } ? S : never;
/** An argument of an operation of a model. */
type Argument<D, O extends string, A extends string> =
  TypesOf<D> extends { operations: { [P in O]: { args: { [Q in A]?: infer T } } } } ? NonNullable<T> : never;
type NewRow<D> = Exclude<Argument<D, 'createManyAndReturn', 'data'>, readonly unknown[]>;
/** A column that `findUnique` accepts alone. */
type Unique<D, L extends string> = Record<L, string> extends Argument<D, 'findUnique', 'where'> ? L : never;
type Model<C> = { [M in keyof C]: [TypesOf<C[M]>] extends [never] ? never : M }[keyof C] & string;
type Transaction<C> = C extends { $transaction: infer F } ? FirstParameter<FirstParameter<F>> : never;

interface Delegate {
  findUnique(query: object): PromiseLike<object | null>;
  findMany(query: object): PromiseLike<object[]>;
  updateMany(query: object): PromiseLike<{ readonly count: number }>;
  createManyAndReturn(query: object): PromiseLike<object[]>;
  upsert(query: object): PromiseLike<object>;
}
type Delegates = Readonly<Record<string, Delegate>>;
type Transacting = Delegates & {
  $executeRaw(statement: TemplateStringsArray, ...values: unknown[]): PromiseLike<unknown>;
};
interface Client {
  $transaction<A>(work: (transaction: Transacting) => Promise<A>, options: object): Promise<A>;
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
  options: Options<K, Row<C[M]>, NewRow<C[M]>, Transaction<C>, L, R, Argument<C[M], 'findFirst', 'where'>> &
    Needed<NewRow<C[M]>, L> & { readonly clerkId: Unique<C[M], L> },
): LinkTable;
export function prismaTable(
  client: () => Client & Delegates,
  model: string,
  options: LooseOptions<Transacting | undefined, object>,
): LinkTable {
  const { id, clerkId: column, claim: address = '', where } = options;
  const read = (row: object | null | undefined) => (row ? String(fieldsOf(row)[id]) : undefined);
  const select = { [id]: true };
  return linkTable<Transacting>(options, {
    rows(transaction: Delegates = client()) {
      const delegate = transaction[model];
      if (!delegate) throw new Error(`The Prisma client has no model ${model}.`);
      return {
        async select(clerkId) {
          const same = { [column]: clerkId };
          const included = where ? { ...same, AND: [where] } : same;
          const found = read(await delegate.findUnique({ where: included, select }));
          if (found !== undefined || !where) return found;
          return (await delegate.findUnique({ where: same, select })) ? null : undefined;
        },
        async candidates(addresses) {
          const isSame = { [address]: { in: addresses, mode: 'insensitive' } };
          const found = await delegate.findMany({
            where: { AND: [isSame, where ?? {}] },
            select: { ...select, [address]: true, [column]: true },
          });
          return found
            .map(fieldsOf)
            .map((row) => ({ id: row[id], address: row[address], clerkId: row[column] }));
        },
        async assign(row, clerkId) {
          const same = { [id]: row.id, [column]: row.clerkId, [address]: row.address, AND: [where ?? {}] };
          const { count } = await delegate.updateMany({ where: same, data: { [column]: clerkId } });
          return count === 1 ? String(row.id) : undefined;
        },
        insertNew: async (row) =>
          read((await delegate.createManyAndReturn({ data: [row], skipDuplicates: true, select }))[0]),
        // PostgreSQL rejects the statement of an upsert without a unique key.
        insertAgain: (create, clerkId) =>
          delegate.upsert({ where: { [column]: clerkId }, create, update: { [column]: clerkId }, select }),
      };
    },
    transaction: (clerkId, work) =>
      client().$transaction(async (transaction) => {
        await transaction.$executeRaw`SELECT set_config('statement_timeout', ${String(CALL_MS)}, true)`;
        await transaction.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended(${clerkId}, 0))`;
        return work(transaction);
      }, TRANSACTION),
  });
}

import type { Organization, User } from '@clerk/backend';
import type { LinkTable, Surroundings } from './configuration';

/** What Clerk returns for an id of each kind. */
export interface Found {
  readonly user: User;
  readonly tenant: Organization;
}

interface Helpers extends Pick<Surroundings, 'headers' | 'registerTenant'> {
  /** The primary address of the user if it is verified, otherwise another verified one. Undefined for an organization. */
  readonly verifiedEmail: string | undefined;
}

/** What the application decides about its rows. `R` are the columns of a row, and `T` is a transaction. */
export interface Rules<F, T, R> {
  /** Returns the other columns of a new row. Without a result, there is no row, and a request gets a 401 or a 403. */
  columns?(found: F, helpers: Helpers): R | undefined | Promise<R | undefined>;
  /** Runs in the transaction of a new row. `found` is undefined without `columns` and `claim`. */
  onInsert?(id: string, transaction: T, found: F | undefined): Promise<unknown>;
  /** Runs after the commit of a new row, at most once. A row of a crashed process gets no call. */
  onCreated?(id: string, found: F | undefined): Promise<unknown>;
}

type Column<W> = keyof W & string;
/** A column of texts. */
type Text<W> = { [C in Column<W>]: NonNullable<W[C]> extends string ? C : never }[Column<W>];
/** The first parameter of a function. */
export type First<F> = F extends (first: infer A, ...others: never) => unknown ? A : never;

/** Without other columns that a new row needs, `columns` is optional. */
export type Needed<N, L extends string> =
  Record<never, never> extends Omit<N, L> ? unknown : { readonly columns: object };

/**
 * Options of a table for the types of a row (`W`) and of a new row (`N`). `R` is what `columns` returns. It may not have other
 * columns than `N`.
 */
export interface Options<K extends keyof Found, W, N, T, L extends string, R>
  extends Rules<Found[K], T, R & { [C in Exclude<keyof R, keyof N>]: never }> {
  readonly kind?: K;
  /** The column of the internal id. */
  readonly id: Column<W>;
  /** The column of Clerk's id. It has a unique key. */
  readonly clerkId: L & Text<W>;
  /** A column of addresses. A new user gets the row with a verified address of the user that has no Clerk id yet. */
  readonly claim?: K extends 'user' ? Text<W> : never;
}

/** The same options without the types of a table. */
export interface LooseOptions<T> extends Rules<Found[keyof Found], T, object> {
  readonly kind?: keyof Found;
  readonly id: string;
  readonly clerkId: string;
  readonly claim?: string;
}

/** A row whose address is one of a user. */
interface Candidate {
  readonly id: unknown;
  readonly address: unknown;
  readonly clerkId: unknown;
}

/** The statements of a store of rows. `T` is a transaction. */
export interface Statements<T> {
  find(clerkId: string): Promise<string | undefined>;
  transaction<A>(work: (transaction: T) => Promise<A>): Promise<A>;
  /** Returns the rows with one of these addresses, in any case of letters. */
  candidates(transaction: T, addresses: readonly string[]): Promise<Candidate[]>;
  /** Gives a row its id at Clerk, unless the id has changed since the candidate was read. Returns the internal id. */
  take(transaction: T, row: Candidate, clerkId: string): Promise<string | undefined>;
  /** Inserts a row. With `skipDuplicates`, returns undefined if another row has one of its unique values. */
  create(transaction: T, row: object, skipDuplicates: boolean): Promise<string | undefined>;
  /** Inserts a row whose id at Clerk is taken, without effect. Rejects if the column has no unique key. */
  repeat(transaction: T, row: object, clerkId: string): PromiseLike<unknown>;
}

const undefinedIfAbsent = (error: { readonly status?: number }) => {
  if (error.status === 404) return undefined;
  throw error;
};

async function fetchFound(kind: 'user' | 'tenant', id: string, { clerk }: Surroundings) {
  const { users, organizations } = await clerk();
  const found = kind === 'user' ? users.getUser(id) : organizations.getOrganization({ organizationId: id });
  return found.catch(undefinedIfAbsent);
}

/** Returns the verified addresses of a user, the primary one first. */
function verifiedAddresses(found: User | Organization): string[] {
  if (!('emailAddresses' in found)) return [];
  const verified = found.emailAddresses.filter(({ verification }) => verification?.status === 'verified');
  const isPrimary = ({ id }: { readonly id: string }) => id === found.primaryEmailAddressId;
  return [...verified.filter(isPrimary), ...verified.filter((address) => !isPrimary(address))].map(
    ({ emailAddress }) => emailAddress,
  );
}

class Rollback extends Error {}

/**
 * Creates the table of a kind. Concurrent calls insert one row, by the unique key of the column of Clerk's id. With `isClaiming`,
 * a row from before the sign-up becomes the row of the user, once.
 */
export function linkTable<K extends keyof Found, T>(
  kind: K,
  column: string,
  isClaiming: boolean,
  { columns, onInsert, onCreated }: Rules<User | Organization, T, object>,
  statements: Statements<T>,
): LinkTable {
  const { find } = statements;

  /** Returns a new row, and what Clerk knows about it. */
  async function prepare(clerkId: string, surroundings: Surroundings) {
    if (!columns && !isClaiming) return { row: { [column]: clerkId }, addresses: [] };
    const found = await fetchFound(kind, clerkId, surroundings);
    if (!found) return undefined;
    const addresses = verifiedAddresses(found);
    const helpers = { ...surroundings, verifiedEmail: addresses[0] };
    const others = columns ? await columns(found, helpers) : {};
    return others && { found, addresses, row: { ...others, [column]: clerkId } };
  }
  type Prepared = NonNullable<Awaited<ReturnType<typeof prepare>>>;

  async function claim(transaction: T, addresses: readonly string[], clerkId: string) {
    if (!isClaiming || addresses.length === 0) return undefined;
    const candidates = await statements.candidates(transaction, addresses);
    const rank = ({ address }: Candidate) => (addresses.some((each) => each === address) ? 0 : 1);
    const unlinked = candidates
      .filter((each) => !(typeof each.clerkId === 'string' && each.clerkId.startsWith('user_')))
      .toSorted((one, other) => rank(one) - rank(other));
    for (const row of unlinked) {
      const id = await statements.take(transaction, row, clerkId);
      if (id !== undefined) return id;
    }
    return undefined;
  }

  async function place(transaction: T, { row, addresses, found }: Prepared, clerkId: string, skip: boolean) {
    const id =
      (await claim(transaction, addresses, clerkId)) ?? (await statements.create(transaction, row, skip));
    if (id !== undefined) await onInsert?.(id, transaction, found);
    return id;
  }

  async function insertPrepared(clerkId: string, prepared: Prepared): Promise<string | undefined> {
    const attempt = (skip: boolean) =>
      statements.transaction((transaction) => place(transaction, prepared, clerkId, skip));
    const id = await attempt(true);
    if (id !== undefined || (await find(clerkId)) !== undefined) return id;
    // Another transaction has just committed a row that can be claimed. Otherwise, the database now names the column.
    try {
      return await attempt(false);
    } catch (cause) {
      if ((await find(clerkId)) !== undefined) return undefined;
      throw new Error(`The row of a new ${kind} cannot be inserted`, { cause });
    }
  }

  return {
    find,
    exists: async (clerkId, surroundings) => (await prepare(clerkId, surroundings)) !== undefined,
    async insert(clerkId, surroundings) {
      const prepared = await prepare(clerkId, surroundings);
      if (!prepared) return undefined;
      const id = await insertPrepared(clerkId, prepared);
      if (id !== undefined) await onCreated?.(id, prepared.found);
      return id;
    },
    async rehearse(clerkId, surroundings) {
      const prepared = await prepare(clerkId, surroundings);
      if (!prepared) return false;
      const rehearsal = statements.transaction(async (transaction) => {
        await place(transaction, prepared, clerkId, false);
        await statements.repeat(transaction, prepared.row, clerkId);
        throw new Rollback();
      });
      return rehearsal.catch((error: unknown) => {
        if (error instanceof Rollback) return true;
        throw error;
      });
    },
  };
}

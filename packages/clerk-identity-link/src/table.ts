import type { Organization, User } from '@clerk/backend';
import { singleFlight, withTimeout } from '../../../lib/core/async';
import { HttpError } from '../../../lib/core/error';
import type { Existing } from '../../../lib/core/ports';
import { type LinkTable, notTried, type Surroundings } from './configuration';

export interface Found {
  readonly user: User;
  readonly tenant: Organization;
}

interface Helpers<T> extends Pick<Surroundings, 'headers' | 'registerTenant'> {
  /** The primary address of the user if it is verified, otherwise another verified one. Undefined for an organization. */
  readonly verifiedEmail: string | undefined;
  /** The transaction of the new row. Undefined with a driver that has none, such as `neon-http` of Drizzle. */
  readonly transaction: T;
}

interface Origin<F> {
  /** Undefined in a request if the table has neither `columns` nor `claim`. */
  readonly found: F | undefined;
  readonly origin: 'created' | 'claimed';
}

type TextColumn<W> = { [C in keyof W]: NonNullable<W[C]> extends string ? C : never }[keyof W] & string;
export type FirstParameter<F> = F extends (first: infer A, ...others: never) => unknown ? A : never;

/** Without other columns that a new row needs, `columns` is optional. */
export type Needed<N, L extends string> =
  Record<never, never> extends Omit<N, L> ? unknown : { readonly columns: object };

/**
 * Options of a table for the types of a row (`W`), of a new row (`N`), of a transaction (`T`) and of a filter (`Q`). `R` is the type
 * of the result of `columns`. It may not have other columns than `N`.
 *
 * With `columns`, `claim` or `onInsert`, a new row has a transaction (READ COMMITTED) that locks its id at Clerk, so each of them
 * runs once for a row, in all processes together. Without them, a new row is one INSERT. A driver without transactions supports
 * only `columns`, which may then run once in each process.
 */
export interface Options<K extends keyof Found, W, N, T, L extends string, R, Q> {
  readonly kind?: K;
  /** The column of the internal id. */
  readonly id: keyof W & string;
  /** The column of Clerk's id. It has a unique key. */
  readonly clerkId: L & TextColumn<W>;
  /** A column of addresses. A new user gets the row with a verified address of the user that has no Clerk id yet. */
  readonly claim?: K extends 'user' ? TextColumn<W> : never;
  /** Claims the row of a deleted user, too. A call to Clerk for the id in the row must return a 404. */
  readonly claimDeleted?: boolean;
  /** The rows that count, such as those that are not deleted. Another row gets a 401 or a 403, and is never claimed. */
  readonly where?: Q;
  /** Returns the other columns of a new row. Without a result, there is no row, and a request gets a 401 or a 403. */
  columns?(found: Found[K], helpers: Helpers<T>): Result<R, N> | Promise<Result<R, N>>;
  /** Runs in the transaction of a new or a claimed row. The transaction ends after five seconds, even if this does not. */
  onInsert?(id: string, transaction: T, origin: Origin<Found[K]>): Promise<unknown>;
  /** Runs after the commit, at most once. An error goes to `onError`. A row of a crashed process gets no call. */
  onCreated?(id: string, origin: Origin<Found[K]>): Promise<unknown>;
}
type Result<R, N> = (R & { [C in Exclude<keyof R, keyof N>]: never }) | undefined;

/** The same options without the types of a table. */
export type LooseOptions<T, Q> = Options<keyof Found, Record<string, string>, object, T, string, object, Q>;

/** A row whose address is one of a user. */
type Candidate = Readonly<Record<'id' | 'address' | 'clerkId', unknown>>;

/** The statements for the rows of a table, in a transaction, or each in one of its own. */
export interface Rows {
  /** Returns the internal id, or null for a row that `where` excludes. */
  select(clerkId: string): Promise<string | null | undefined>;
  /** Returns at least the rows with one of these addresses, in any case of ASCII letters, and none without an address. */
  candidates(addresses: readonly string[]): Promise<Candidate[]>;
  /** Gives a row its id at Clerk, unless the id has changed since the candidate was read. Returns the internal id. */
  assign(row: Candidate, clerkId: string): Promise<string | undefined>;
  /** Inserts a row. Returns undefined if another row has one of its unique values. */
  insertNew(row: object): Promise<string | undefined>;
  /** Inserts a row whose id at Clerk is taken, without effect. Rejects if the column has no unique key. */
  insertAgain(row: object, clerkId: string): PromiseLike<unknown>;
}

/** A database with transactions `T`. */
export interface Database<T> {
  rows(transaction?: T): Rows;
  /** Runs `work` in a transaction that locks the id at Clerk, or without one if the driver has none and the options allow it. */
  transaction<A>(clerkId: string, work: (transaction?: T) => Promise<A>): Promise<A>;
}

/** Milliseconds after which a transaction ends, and after which one of its statements or another call fails. */
const TRANSACTION_MS = 5_000;
export const CALL_MS = 3_000;
const REGISTRATION_MS = TRANSACTION_MS + CALL_MS;
/** Milliseconds for which a process does not call Clerk again for a signed-in user who gets no row. */
const REFUSAL_MS = 5_000;

/** Returns the user or the organization, or undefined for an id that Clerk does not have. */
async function fetchFound(kind: keyof Found, id: string, { clerk, onError }: Surroundings) {
  const { users, organizations } = await clerk();
  const found = kind === 'user' ? users.getUser(id) : organizations.getOrganization({ organizationId: id });
  const fetched = withTimeout<User | Organization>(CALL_MS, found);
  return fetched.catch((error: { readonly status?: number; readonly retryAfter?: number }) => {
    const { status = 503, retryAfter = 1 } = error; // A broken connection has no status.
    if (status === 404) return undefined;
    if (status !== 429 && status < 500) throw error;
    onError(error, 'Clerk');
    throw new HttpError(503, 'Service Unavailable', { 'retry-after': String(retryAfter) });
  });
}

/** Returns the verified addresses of a user, the primary one first. */
function verifiedAddresses(found: User | Organization): string[] {
  if (!('emailAddresses' in found)) return [];
  const verified = found.emailAddresses.filter(({ verification }) => verification?.status === 'verified');
  const rank = ({ id }: { readonly id: string }) => (id === found.primaryEmailAddressId ? 0 : 1);
  return verified.toSorted((one, other) => rank(one) - rank(other)).map(({ emailAddress }) => emailAddress);
}

/** Folds ASCII letters only, because other letters have the same lower case as an ASCII letter. */
const fold = (address: unknown) => String(address).replace(/[A-Z]/g, (letter) => letter.toLowerCase());

const isUserId = (id: unknown): id is string => String(id).startsWith('user_');

/** The row of an id. Without a row, `id` is absent. If another call has inserted it, `row` and `origin` are absent. */
interface Placed {
  readonly id?: string | null;
  readonly origin?: 'created' | 'claimed';
  readonly row?: object;
}

/**
 * Creates the table of a kind. Concurrent calls insert one row, by the unique key of the column of Clerk's id. With `claim`, a row
 * from before the sign-up becomes the row of the user, once.
 */
export function linkTable<T>(
  options: LooseOptions<T | undefined, unknown>,
  { rows, transaction: begin }: Database<T>,
): LinkTable {
  const { kind = 'user', clerkId: column, claim, claimDeleted, columns, onInsert, onCreated } = options;
  const flights = singleFlight<string | Existing | undefined>();
  /** Users of verified sessions who have just got no row. */
  const refused = new Set<string>();
  const prefix = kind === 'user' ? 'user_' : 'org_';

  /** Fetches from Clerk, before the transaction. Returns undefined for an id that Clerk does not have. */
  async function fetchOwner(clerkId: string, surroundings: Surroundings) {
    const deleted = new Set<unknown>();
    if (!columns && !claim && surroundings.isVerified) return { addresses: [], deleted };
    const found = await fetchFound(kind, clerkId, surroundings);
    if (!found) return undefined;
    const addresses = verifiedAddresses(found);
    for (const { clerkId: id } of claimDeleted ? await rows().candidates(addresses) : [])
      if (isUserId(id) && !(await fetchFound('user', id, surroundings))) deleted.add(id);
    return { found, addresses, deleted };
  }
  type Owner = NonNullable<Awaited<ReturnType<typeof fetchOwner>>>;

  /** Takes over a row from before the sign-up. An exact address precedes one in other letters. */
  async function claimRow({ addresses, deleted }: Owner, clerkId: string, own: Rows) {
    const candidates = claim ? await own.candidates(addresses) : [];
    const free = candidates.filter((row) => !isUserId(row.clerkId) || deleted.has(row.clerkId));
    const ordered = addresses.flatMap((address) => [
      ...free.filter((row) => row.address === address),
      ...free.filter((row) => fold(row.address) === fold(address)),
    ]);
    for (const row of ordered) {
      const id = await own.assign(row, clerkId);
      if (id !== undefined) return id;
    }
    return undefined;
  }

  async function place(clerkId: string, owner: Owner, given: Surroundings, transaction?: T): Promise<Placed> {
    const own = rows(transaction);
    let id = await own.select(clerkId);
    if (id !== undefined) return { id };
    const { found, addresses } = owner;
    const helpers = { ...given, verifiedEmail: addresses[0], transaction };
    const others = columns && found ? await columns(found, helpers) : {};
    if (!others) return {};
    const row = { ...others, [column]: clerkId };
    // The second time, a row that another transaction has just committed is seen.
    for (const _attempt of [1, 2]) {
      const claimed = await claimRow(owner, clerkId, own);
      id = claimed ?? (await own.insertNew(row));
      const origin = claimed === undefined ? 'created' : 'claimed';
      if (id !== undefined) {
        await onInsert?.(id, transaction, { found, origin });
        return { id, origin, row };
      }
      id = await own.select(clerkId);
      if (id !== undefined) return { id };
    }
    try {
      // The database names the column. Without an error, the client hides the row from `select`.
      await own.insertAgain(row, clerkId);
      return {};
    } catch (cause) {
      throw new Error(`The row of a new ${kind} cannot be inserted`, { cause });
    }
  }

  let turn: Promise<unknown> = Promise.resolve();
  /**
   * Runs the transactions of a process one after another, so that new rows need one connection besides those of your functions. The
   * wait counts for the time limit of a registration.
   */
  function transact(clerkId: string, work: (transaction?: T) => Promise<Placed>): Promise<Placed> {
    const timed = (transaction?: T) => withTimeout(TRANSACTION_MS, work(transaction));
    const run = () => withTimeout(REGISTRATION_MS, begin(clerkId, timed));
    const placed = turn.then(run, run);
    turn = placed;
    return placed;
  }

  async function createRow(clerkId: string, surroundings: Surroundings) {
    const owner = await fetchOwner(clerkId, surroundings);
    if (!owner) return undefined;
    const isSimple = !columns && !claim && !onInsert;
    const inserted = isSimple ? await rows().insertNew({ [column]: clerkId }) : undefined;
    const { id, origin }: Placed = inserted
      ? { id: inserted, origin: 'created' }
      : await transact(clerkId, (transaction) => place(clerkId, owner, surroundings, transaction));
    if (typeof id !== 'string') return undefined;
    if (!origin) return { existing: id };
    const after = async () => onCreated?.(id, { found: owner.found, origin });
    await withTimeout(CALL_MS, after()).catch((error: unknown) => surroundings.onError(error, 'onCreated'));
    return id;
  }

  return {
    find: async (clerkId) => rows().select(clerkId),
    // `insert` returns undefined only if there shall be no row.
    exists: async () => false,
    async insert(clerkId, surroundings) {
      const { isVerified = false } = surroundings;
      if (!clerkId.startsWith(prefix)) throw new Error(`Not an id of Clerk (${prefix}…)`);
      if (isVerified && refused.has(clerkId)) return undefined;
      let isOwn = false;
      // A session does not share the refusal of an event or a job, because Clerk may have the user since.
      const inserted = await flights(`${isVerified} ${clerkId}`, () => {
        isOwn = true;
        return withTimeout(REGISTRATION_MS, createRow(clerkId, surroundings));
      });
      if (typeof inserted === 'string' && !isOwn) return { existing: inserted };
      if (inserted === undefined && isVerified) {
        refused.add(clerkId);
        setTimeout(() => refused.delete(clerkId), REFUSAL_MS).unref();
      }
      return inserted;
    },
    async rehearse(clerkId, surroundings) {
      const owner = await fetchOwner(clerkId, surroundings);
      if (!owner) return false;
      let placed: Placed = {};
      const rollback = new Error('Rolled back');
      const rehearsal = transact(clerkId, async (transaction) => {
        if (!transaction) throw notTried('the driver has no transactions.');
        placed = await place(clerkId, owner, surroundings, transaction);
        if (placed.row) await rows(transaction).insertAgain(placed.row, clerkId);
        throw rollback;
      });
      await rehearsal.catch((error: unknown) => {
        if (error !== rollback) throw error;
      });
      return placed.row !== undefined;
    },
  };
}

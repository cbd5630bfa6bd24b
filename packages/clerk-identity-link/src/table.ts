import type { Organization, User } from '@clerk/backend';
import { singleFlight, withTimeout } from '../../../lib/core/async';
import { HttpError } from '../../../lib/core/error';
import type { Existing } from '../../../lib/core/ports';
import { type LinkTable, NotTried, type Surroundings } from './configuration';

/** What Clerk returns for an id of each kind. */
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

/**
 * Rules of the application. `R` are the columns of a row, and `T` is a transaction.
 *
 * With `columns`, `claim` or `onInsert`, a new row has a transaction (READ COMMITTED) that locks its id at Clerk, so each of them
 * runs once for a row, in all processes together. Without them, a new row is one INSERT. A driver without transactions supports
 * only `columns`, which may then run once in each process.
 */
export interface Rules<F, T, R> {
  /** Returns the other columns of a new row. Without a result, there is no row, and a request gets a 401 or a 403. */
  columns?(found: F, helpers: Helpers<T>): R | undefined | Promise<R | undefined>;
  /** Runs in the transaction of a new or a claimed row. The transaction ends after five seconds, even if this does not. */
  onInsert?(id: string, transaction: T, origin: Origin<F>): Promise<unknown>;
  /** Runs after the commit, at most once. An error goes to `onError`. A row of a crashed process gets no call. */
  onCreated?(id: string, origin: Origin<F>): Promise<unknown>;
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
 * Options of a table for the types of a row (`W`), of a new row (`N`) and of a filter (`Q`). `R` is the type
 * of the result of `columns`. It may not have other columns than `N`.
 */
export interface Options<K extends keyof Found, W, N, T, L extends string, R, Q>
  extends Rules<Found[K], T, R & { [C in Exclude<keyof R, keyof N>]: never }> {
  readonly kind?: K;
  /** The column of the internal id. */
  readonly id: Column<W>;
  /** The column of Clerk's id. It has a unique key. */
  readonly clerkId: L & Text<W>;
  /** A column of addresses. A new user gets the row with a verified address of the user that has no Clerk id yet. */
  readonly claim?: K extends 'user' ? Text<W> : never;
  /** Claims the row of a deleted user, too. A call to Clerk for the id in the row must return a 404. */
  readonly claimDeleted?: boolean;
  /** The rows that count, such as those that are not deleted. Another row gets a 401 or a 403, and is never claimed. */
  readonly where?: Q;
}

/** The same options without the types of a table. */
export type LooseOptions<T, Q> = Options<keyof Found, Record<string, string>, object, T, string, object, Q>;

/** A row whose address is one of a user. */
interface Candidate {
  readonly id: unknown;
  readonly address: unknown;
  readonly clerkId: unknown;
}

/** The statements of a store of rows. `T` is a transaction. Without it, a statement is a transaction of its own. */
export interface Statements<T> {
  /** Returns the internal id, or null for a row that `where` excludes. */
  find(clerkId: string, transaction?: T): Promise<string | null | undefined>;
  /** Runs `work` in a transaction that locks the id at Clerk, or without one if the driver has none and `isOptional`. */
  transaction<A>(clerkId: string, isOptional: boolean, work: (transaction?: T) => Promise<A>): Promise<A>;
  /** Returns at least the rows with one of these addresses, in any case of ASCII letters, and none without an address. */
  candidates(addresses: readonly string[], transaction?: T): Promise<Candidate[]>;
  /** Gives a row its id at Clerk, unless the id has changed since the candidate was read. Returns the internal id. */
  take(row: Candidate, clerkId: string, transaction?: T): Promise<string | undefined>;
  /** Inserts a row. Returns undefined if another row has one of its unique values. */
  insert(row: object, transaction?: T): Promise<string | undefined>;
  /** Inserts a row whose id at Clerk is taken, without effect. Rejects if the column has no unique key. */
  repeat(row: object, clerkId: string, transaction?: T): PromiseLike<unknown>;
}

/** Milliseconds after which a transaction ends, and after which one of its statements or another call fails. */
const TRANSACTION_MS = 5_000;
export const CALL_MS = 3_000;
const REGISTRATION_MS = TRANSACTION_MS + CALL_MS;
/** Milliseconds for which a process does not call Clerk again for a signed-in user who gets no row. */
const REFUSAL_MS = 5_000;

const PREFIXES = { user: 'user_', tenant: 'org_' };

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

/** A refused event or job does not refuse the session of the user, of whom Clerk may know later. */
const keyOf = (clerkId: string, isVerified = false) => `${isVerified} ${clerkId}`;

const isUserId = (id: unknown): id is string => String(id).startsWith('user_');

class Rollback extends Error {}

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
  statements: Statements<T>,
): LinkTable {
  const { kind = 'user', clerkId: column, claim, claimDeleted, columns, onInsert, onCreated } = options;
  const flights = singleFlight<string | Existing | undefined>();
  const refused = new Set<string>();
  const isOptional = !claim && !onInsert;

  /** Fetches from Clerk, before the transaction. Returns undefined for an id that Clerk does not have. */
  async function ask(clerkId: string, surroundings: Surroundings) {
    const deleted = new Set<unknown>();
    if (!columns && !claim && surroundings.isVerified) return { addresses: [], deleted };
    const found = await fetchFound(kind, clerkId, surroundings);
    if (!found) return undefined;
    const addresses = verifiedAddresses(found);
    for (const { clerkId: id } of claimDeleted ? await statements.candidates(addresses) : [])
      if (isUserId(id) && !(await fetchFound('user', id, surroundings))) deleted.add(id);
    return { found, addresses, deleted };
  }
  type Asked = NonNullable<Awaited<ReturnType<typeof ask>>>;

  /** Takes over a row from before the sign-up. An exact address precedes one in other letters. */
  async function take({ addresses, deleted }: Asked, clerkId: string, transaction: T | undefined) {
    const candidates = claim ? await statements.candidates(addresses, transaction) : [];
    const free = candidates.filter((row) => !isUserId(row.clerkId) || deleted.has(row.clerkId));
    const ordered = addresses.flatMap((address) => [
      ...free.filter((row) => row.address === address),
      ...free.filter((row) => fold(row.address) === fold(address)),
    ]);
    for (const row of ordered) {
      const id = await statements.take(row, clerkId, transaction);
      if (id !== undefined) return id;
    }
    return undefined;
  }

  async function place(clerkId: string, asked: Asked, given: Surroundings, transaction?: T): Promise<Placed> {
    let id = await statements.find(clerkId, transaction);
    if (id !== undefined) return { id };
    const { found, addresses } = asked;
    const helpers = { ...given, verifiedEmail: addresses[0], transaction };
    const others = columns && found ? await columns(found, helpers) : {};
    if (!others) return {};
    const row = { ...others, [column]: clerkId };
    // The second time, a row that another transaction has just committed is seen.
    for (const _attempt of [1, 2]) {
      const taken = await take(asked, clerkId, transaction);
      id = taken ?? (await statements.insert(row, transaction));
      const origin = taken === undefined ? 'created' : 'claimed';
      if (id !== undefined) {
        await onInsert?.(id, transaction, { found, origin });
        return { id, origin, row };
      }
      id = await statements.find(clerkId, transaction);
      if (id !== undefined) return { id };
    }
    try {
      // The database names the column. Without an error, the client hides the row from `find`.
      await statements.repeat(row, clerkId, transaction);
      return {};
    } catch (cause) {
      throw new Error(`The row of a new ${kind} cannot be inserted`, { cause });
    }
  }

  /**
   * Runs the transactions of a process one after another, so that new rows need one connection besides those of your functions. The
   * wait counts for the time limit of a registration.
   */
  let last: Promise<unknown> = Promise.resolve();
  function inTurn<A>(work: () => Promise<A>): Promise<A> {
    const run = last.then(work, work);
    last = run;
    return run;
  }

  async function insert(clerkId: string, surroundings: Surroundings) {
    const asked = await ask(clerkId, surroundings);
    if (!asked) return undefined;
    const inserted = columns || !isOptional ? undefined : await statements.insert({ [column]: clerkId });
    const work = (transaction?: T) =>
      withTimeout(TRANSACTION_MS, place(clerkId, asked, surroundings, transaction));
    const { id, origin }: Placed = inserted
      ? { id: inserted, origin: 'created' }
      : await inTurn(() => withTimeout(REGISTRATION_MS, statements.transaction(clerkId, isOptional, work)));
    if (typeof id !== 'string') return undefined;
    if (!origin) return { existing: id };
    const after = async () => onCreated?.(id, { found: asked.found, origin });
    await withTimeout(CALL_MS, after()).catch((error: unknown) => surroundings.onError(error, 'onCreated'));
    return id;
  }

  return {
    find: (clerkId) => statements.find(clerkId),
    exists: async (clerkId, { isVerified }) => !refused.has(keyOf(clerkId, isVerified)),
    async insert(clerkId, surroundings) {
      const { isVerified } = surroundings;
      if (!clerkId.startsWith(PREFIXES[kind])) throw new Error(`Not an id of Clerk (${PREFIXES[kind]}…)`);
      const key = keyOf(clerkId, isVerified);
      if (isVerified && refused.has(key)) return undefined;
      let isOwn = false;
      const inserted = await flights(key, () => {
        isOwn = true;
        return withTimeout(REGISTRATION_MS, insert(clerkId, surroundings));
      });
      if (typeof inserted === 'string' && !isOwn) return { existing: inserted };
      if (inserted === undefined) {
        refused.add(key);
        setTimeout(() => refused.delete(key), REFUSAL_MS).unref();
      }
      return inserted;
    },
    async rehearse(clerkId, surroundings) {
      const asked = await ask(clerkId, surroundings);
      let placed: Placed = {};
      const rehearsal = async (transaction?: T) => {
        if (!transaction) throw new NotTried('the driver has no transactions.');
        if (asked)
          placed = await withTimeout(TRANSACTION_MS, place(clerkId, asked, surroundings, transaction));
        if (placed.row) await statements.repeat(placed.row, clerkId, transaction);
        throw new Rollback();
      };
      return statements.transaction(clerkId, true, rehearsal).catch((error: unknown) => {
        if (error instanceof Rollback) return placed.row !== undefined;
        throw error;
      });
    },
  };
}

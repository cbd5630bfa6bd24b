/** Limits of the exploration: the number of users, the number of processes, and the maximum number of each kind of step. */
export interface Bounds {
  readonly users: number;
  readonly processes: number;
  /**
   * Calls of each kind, including repeated calls. In the model, a guard is a request with a session to a guarded route
   * (lib/guard.ts). The other kinds are calls of the register route and webhook deliveries.
   */
  readonly guards: number;
  readonly registers: number;
  readonly deliveries: number;
  /**
   * Runs of `users:forget`, which deletes the row of a user. After that, the user is forgotten: only a session token that is
   * newer than the deletion links the user again.
   */
  readonly forgets: number;
  /**
   * Moves of a user (`users:relink`) from the old instance of the provider to the new instance, where the user has a different
   * id. The second move of a user is a rollback.
   */
  readonly relinks: number;
  readonly crashes: number;
  /** Outages of the cache. */
  readonly outages: number;
  /** Responses of the database that are lost after the statement had its effect. */
  readonly lostResponses: number;
  /** Registrations that exceed their deadline. Their statements continue. */
  readonly timeouts: number;
}

/** Deliberate errors in the model. `npm run model` checks that the model with any one of these errors breaks a guarantee. */
export const WEAKNESSES = [
  'no unique key',
  'the insert replaces the row',
  'a call that lost the race returns the id that it did not insert',
  'a call that lost the race reports created',
  'single-flight reports created to all callers',
  'the cache is written before the commit',
  'a cache hit writes the entry again',
  'a lookup writes to the cache after its deadline',
  'forget deletes the row before the cache entry',
  'forget does not wait for lookups',
  'forget does not delete the cache entry again after it has waited for lookups',
  'forget marks the user as forgotten after the deletion',
  'the insert does not check forgotten users',
  'a guard that shares a result for a forgotten user does not try its own token',
  'relink stores the previous id after the move',
  'the lookup does not read previous ids',
  'the insert does not check previous ids',
  'the insert does not check expired previous ids',
  'forget marks only one id of the user as forgotten',
  'forget deletes only one of the cache entries of the user',
  'the webhook is acknowledged before the commit',
  'the webhook is acknowledged after a failed registration',
] as const;
export type Weakness = (typeof WEAKNESSES)[number];

/** A request with a session of the user, a call of the register route, or a delivery of `user.created`. */
export type Kind = 'guard' | 'register' | 'webhook';

/** The ids of a user at the old and at the new instance of the provider. */
export const NAMES = [0, 1] as const;
export type Name = (typeof NAMES)[number];

/** A request in a process. `name` is the provider's id of the user. `id` is the internal id, or 0 until it is known. */
export interface Call {
  readonly kind: Kind;
  readonly user: number;
  readonly name: Name;
  readonly process: number;
  /**
   * The next step. `read` and `write` are commands of the cache. `find`, `insert` and `find again` are statements of the
   * database. At `shares guard` and `shares register`, a call waits for the result of another call in the same process.
   */
  at: 'read' | 'find' | 'insert' | 'find again' | 'write' | 'shares guard' | 'shares register';
  id: number;
  created: boolean;
  /** The call is a guard whose session token was issued after the last deletion of the user. */
  hasNewToken: boolean;
  /** The cache did not respond to the read, so the call does not write to the cache. */
  skipsCache: boolean;
  /** The deadline has passed: the caller has an error, but the statements continue. */
  isLate: boolean;
  /** Other guards do not share the result of this guard. */
  guardsAlone: boolean;
  /** Other calls do not share the registration of this call. */
  registersAlone: boolean;
  /** A database trigger has rejected the insert, because the id is a previous id. The call repeats its registration. */
  isRepeated: boolean;
}

/** State of one of the provider's ids of a user: its cache entry, and whether an operator has forgotten the user. */
export interface NameState {
  /** The cached id, or 0. */
  cached: number;
  /** The entry was written while an operator was forgetting the user. */
  cachedDuringForget: boolean;
  /** An operator has forgotten the user with this id. In the model, this state does not expire. */
  isForgotten: boolean;
}

export interface UserState {
  /** The ids of the user's rows. */
  rows: number[];
  /** The ids of the user's deleted rows. */
  deleted: number[];
  /** Number of ids that were generated. */
  ids: number;
  names: [NameState, NameState];
  /** The provider's id that the row contains. */
  present: Name;
  /** State of the user's other id. After a move, this id is a previous id, which the service accepts until it expires. */
  previous: 'none' | 'valid' | 'expired';
  /** A run of `users:forget` has deleted a row. Since then, neither this run nor a later run has reported success. */
  isForgetting: boolean;
  /** The row was inserted by a call without a token that is newer than the last deletion. */
  hasOldRow: boolean;
  /** A token that is newer than the deletion was rejected. */
  isRejected: boolean;
  /** A call with an id of a linked user has found no user. */
  isLost: boolean;
  /** The ids that callers got. */
  returned: number[];
  /** Number of registrations that reported `created`. */
  created: number;
  /** A webhook was acknowledged. */
  isAcknowledged: boolean;
}

/**
 * A run of `users:forget` for a user. `at` is the next step. The step `delete` deletes the row and marks the user as forgotten.
 * With the weakness that marks the user after the deletion, the step `store` marks the user instead.
 */
export interface Forget {
  readonly user: number;
  at: 'uncache first' | 'delete' | 'store' | 'uncache' | 'wait' | 'uncache last';
}

export interface State {
  users: UserState[];
  calls: Call[];
  forget: Forget | null;
  /** A user whose move has not stored the previous id yet. Occurs only with the weakness that stores it after the move. */
  relink: number | null;
  isCacheUp: boolean;
  left: Omit<Bounds, 'users' | 'processes'>;
}

export const REGISTERING: readonly Call['at'][] = ['find', 'insert', 'find again'];
export const rank = ({ kind, user, name, process, at, id, ...flags }: Call) =>
  `${process} ${user} ${name} ${kind} ${at} ${id} ${Object.values(flags).join()}`;
export const isRegistering = (call: Call) => REGISTERING.includes(call.at) && !call.isLate;

const newName = (): NameState => ({ cached: 0, cachedDuringForget: false, isForgotten: false });
/** Returns a user without a row. */
export const newUser = (): UserState => ({
  ...{ rows: [], deleted: [], ids: 0, present: 0, previous: 'none', isForgetting: false },
  ...{ hasOldRow: false, isRejected: false, isLost: false },
  names: [newName(), newName()],
  ...{ returned: [], created: 0, isAcknowledged: false },
});

export const userOf = (state: State, { user }: { readonly user: number }): UserState => {
  const found = state.users[user];
  if (found === undefined) throw new Error('Unknown user');
  return found;
};
/** Returns true if two calls have the same process and the same id of the provider. */
export const isAlike = (one: Call, other: Omit<Call, 'at'>) =>
  one.process === other.process && one.user === other.user && one.name === other.name;
const sharing = (state: State, call: Call, at: Call['at']) =>
  state.calls.filter((each) => isAlike(each, call) && each.at === at);
/** Returns the guards that share the result of a guard. */
export const sharingGuards = (state: State, call: Call) =>
  call.kind !== 'guard' || call.isLate || call.guardsAlone ? [] : sharing(state, call, 'shares guard');
/** Returns the calls that share the registration of a call. */
export const sharingRegistration = (state: State, call: Call) =>
  isRegistering(call) && !call.registersAlone ? sharing(state, call, 'shares register') : [];
export const remove = (state: State, call: Call) => {
  state.calls = state.calls.filter((each) => each !== call);
};

export function newId(user: UserState): number {
  user.ids += 1;
  return user.ids;
}

/** Removes the cache entry of one of the provider's ids. */
export function uncache(name: NameState | undefined): void {
  if (name !== undefined) Object.assign(name, { cached: 0, cachedDuringForget: false });
}

/** Copies a state. Copying the known fields is several times faster than `structuredClone`. */
export function copy(state: State): State {
  return {
    ...state,
    users: state.users.map((user) => ({
      ...user,
      rows: [...user.rows],
      deleted: [...user.deleted],
      returned: [...user.returned],
      names: [{ ...user.names[0] }, { ...user.names[1] }],
    })),
    calls: state.calls.map((call) => ({ ...call })),
    forget: state.forget && { ...state.forget },
  };
}

/** Returns the guarantee that a state breaks, if there is one. */
export function brokenGuarantee({ users }: State): string | undefined {
  for (const user of users) {
    const { rows, deleted, names, returned } = user;
    const isForgotten = names.some((name) => name.isForgotten);
    const ids = new Set([...rows, ...deleted, ...returned]);
    if (rows.length > 1 || ids.size > 1 + deleted.length)
      return 'a user has one id until an operator forgets the user';
    if (user.created > 1 + deleted.length) return 'at most one response per link reports created';
    if (user.isAcknowledged && rows.length + deleted.length === 0 && !isForgotten)
      return 'the user of an acknowledged webhook has a row, or an operator has forgotten the user';
    if (isForgotten && user.hasOldRow && rows.length > 0)
      return 'only a newer token links a forgotten user again';
    if (user.isRejected) return 'a newer token is not rejected';
    if (user.isLost) return 'a linked user is found by each of its ids';
    const isStale = ({ cached, cachedDuringForget }: NameState) =>
      cached !== 0 && !rows.includes(cached) && !(user.isForgetting && cachedDuringForget);
    if (names.some(isStale))
      return 'a cached id has a row, except for entries that requests write while an operator forgets the user';
  }
  return undefined;
}

/** Limits of the exploration: the number of users, the number of processes, and the maximum number of each kind of step. */
export interface Bounds {
  readonly users: number;
  readonly processes: number;
  /** Requests through the guard, registrations and webhook deliveries, including repeated requests. */
  readonly guards: number;
  readonly registers: number;
  readonly deliveries: number;
  readonly forgets: number;
  readonly crashes: number;
  /** Outages of the cache. */
  readonly outages: number;
  /** Responses of the database that are lost after the statement had its effect. */
  readonly lostResponses: number;
  /** Registrations that exceed their deadline. Their statements continue. */
  readonly timeouts: number;
}

/** Changes of the service that break a guarantee. `npm run model` checks that the exploration finds each broken guarantee. */
export const WEAKNESSES = [
  'no unique key',
  'the insert replaces the row',
  'a lost race returns the id that it did not insert',
  'the first lookup decides what counts as created',
  'single-flight reports created to all callers',
  'the cache is written before the commit',
  'a cache hit writes the entry again',
  'a lookup writes to the cache after its deadline',
  'forget deletes the row before the cache entry',
  'forget does not wait for lookups',
  'forget does not delete the cache entry after the pause',
  'forget marks the user as forgotten after the deletion',
  'the insert does not check forgotten users',
  'a call does not repeat a shared registration of a forgotten user',
  'the webhook is acknowledged before the commit',
  'the webhook is acknowledged after a failed registration',
] as const;
export type Weakness = (typeof WEAKNESSES)[number];

/** A request with a session of the user, a call of the register route, or a delivery of `user.created`. */
export type Kind = 'guard' | 'register' | 'webhook';

/** A request in a process. `id` is 0 until it is known. */
export interface Call {
  readonly kind: Kind;
  readonly user: number;
  readonly process: number;
  /**
   * The next step. `read` and `write` are commands of the cache. `find`, `insert` and `find again` are statements of the
   * database. A call that `shares` waits for the result of another call in the same process.
   */
  at: 'read' | 'find' | 'insert' | 'find again' | 'write' | 'shares guard' | 'shares register';
  id: number;
  created: boolean;
  /** The session token was issued after the last deletion of the user. Only guards have a token of the user. */
  hasNewToken: boolean;
  /** The cache did not respond to the read, so the call does not write to the cache. */
  skipsCache: boolean;
  /** The deadline has passed: the caller has an error, but the statements continue. */
  isLate: boolean;
  /** Other guards do not share the result of this guard. */
  guardsAlone: boolean;
  /** Other calls do not share the registration of this call. */
  registersAlone: boolean;
}

export interface UserState {
  /** The ids of the user's rows. */
  rows: number[];
  /** The ids of the user's deleted rows. */
  deleted: number[];
  /** Number of ids that were generated. */
  ids: number;
  /** The cached id, or 0. */
  cached: number;
  /** The cache entry was written while an operator was forgetting the user. */
  cachedDuringForget: boolean;
  /** A row was deleted, and no later forget has reported success. */
  isForgetting: boolean;
  /** The database marks the user as forgotten. In the model, this mark does not expire. */
  isForgotten: boolean;
  /** The row was inserted for a token from before the deletion. */
  hasOldRow: boolean;
  /** A token that is newer than the deletion was rejected. */
  isRejected: boolean;
  /** The ids that callers got. */
  returned: number[];
  /** Number of registrations that reported `created`. */
  created: number;
  /** A webhook was acknowledged. */
  isAcknowledged: boolean;
}

/** An operator's command that forgets a user. `at` is the next step. Only a weakened model has the step `store`. */
export interface Forget {
  readonly user: number;
  at: 'uncache first' | 'delete' | 'store' | 'uncache' | 'wait' | 'uncache last';
}

export interface State {
  users: UserState[];
  calls: Call[];
  forget: Forget | null;
  isCacheUp: boolean;
  left: Omit<Bounds, 'users' | 'processes'>;
}

export const REGISTERING: readonly Call['at'][] = ['find', 'insert', 'find again'];
export const rank = ({ kind, user, process, at, id, ...flags }: Call) =>
  `${process} ${user} ${kind} ${at} ${id} ${Object.values(flags).join()}`;
export const isRegistering = (call: Call) => REGISTERING.includes(call.at) && !call.isLate;

/** Returns a user without a row. */
export const newUser = (): UserState => ({
  ...{ rows: [], deleted: [], ids: 0, cached: 0, cachedDuringForget: false, isForgetting: false },
  ...{ isForgotten: false, hasOldRow: false, isRejected: false },
  ...{ returned: [], created: 0, isAcknowledged: false },
});

export const userOf = (state: State, { user }: { readonly user: number }): UserState => {
  const found = state.users[user];
  if (found === undefined) throw new Error('Unknown user');
  return found;
};
const sharing = (state: State, { process, user }: Call, at: Call['at']) =>
  state.calls.filter((call) => call.process === process && call.user === user && call.at === at);
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

/** Removes the cached id. */
export function uncache(user: UserState | undefined): void {
  if (user !== undefined) Object.assign(user, { cached: 0, cachedDuringForget: false });
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
    })),
    calls: state.calls.map((call) => ({ ...call })),
    forget: state.forget && { ...state.forget },
  };
}

/** Returns the guarantee that a state breaks, if there is one. */
export function brokenGuarantee({ users }: State): string | undefined {
  for (const user of users) {
    const { rows, deleted, cached, returned } = user;
    const ids = new Set([...rows, ...deleted, ...returned]);
    if (rows.length > 1 || ids.size > 1 + deleted.length)
      return 'a user has one id until an operator forgets the user';
    if (user.created > 1 + deleted.length) return 'at most one response per link reports created';
    if (user.isAcknowledged && rows.length + deleted.length === 0 && !user.isForgotten)
      return 'the user of an acknowledged webhook has a row, or an operator has forgotten the user';
    if (user.isForgotten && user.hasOldRow && rows.length > 0)
      return 'only a newer token links a forgotten user again';
    if (user.isRejected) return 'a newer token is not rejected';
    if (cached !== 0 && !rows.includes(cached) && !(user.isForgetting && user.cachedDuringForget))
      return 'a cached id has a row, except for entries that requests write while an operator forgets the user';
  }
  return undefined;
}

import type { Model, Step } from './explore';

// Models how the service links a user of the identity provider to an internal id: lib/register.ts, lib/user-id.ts,
// lib/webhook.ts, lib/users/forget.ts and lib/users/relink.ts. A step is one statement of the database, one command of the
// cache, or one failure. Between two steps of a call, any other step can happen. The calls of the model share no results. A
// call of the service that shares the result of another call has a result that it could also get alone.
//
// The command `forget` deletes a user. After that, only a newer session token links this forgotten user again. The command
// `relink` moves a user to another id at the provider, or back. The id before the move becomes a previous id, which expires.

/** Maximum number of steps of each kind. */
export const NONE = {
  /** Requests with a session to a guarded route. */
  guard: 0,
  /** Calls of the register route. */
  register: 0,
  /** Deliveries of `user.created`. */
  webhook: 0,
  forget: 0,
  /** Moves of the user. The second move is a rollback. */
  relink: 0,
  /** Calls and commands that end between two steps. */
  crash: 0,
  /** Outages of the cache. */
  outage: 0,
  /** Responses of the database that are lost after the statement had its effect. */
  lostResponse: 0,
  /** Registrations that exceed their deadline. Their statements continue. */
  timeout: 0,
};
export type Bounds = typeof NONE;

/** Deliberate errors of the model. The model with any one of them breaks a guarantee. */
export const WEAKNESSES = [
  'no unique key',
  'a call that lost the race reports created',
  'the cache is written before the commit',
  'a cache hit writes the entry again',
  'a lookup writes to the cache after its deadline',
  'forget deletes the row before the cache entry',
  'forget does not wait for lookups',
  'forget does not delete the cache entry again after it has waited for lookups',
  'forget marks the user as forgotten after the deletion',
  'the insert does not check forgotten users',
  'relink stores the previous id after the move',
  'the lookup does not read previous ids',
  'the insert does not check previous ids',
  'the insert does not check expired previous ids',
  'forget marks only one id of the user as forgotten',
  'forget deletes only one of the cache entries of the user',
  'the webhook is acknowledged before the commit',
  'the webhook is acknowledged after a failed registration',
] as const;
type Weakness = (typeof WEAKNESSES)[number];

const KINDS = ['guard', 'register', 'webhook'] as const;
/** The ids of the user at the old and at the new instance of the provider. */
const NAMES = [0, 1] as const;
type Name = (typeof NAMES)[number];

/** A call in progress. `name` is the provider's id of the user. `id` is the internal id, or 0 until it is known. */
interface Call {
  readonly kind: (typeof KINDS)[number];
  readonly name: Name;
  /** The next step: a command of the cache (`read`, `write`) or a statement of the database. */
  at: 'read' | 'find' | 'insert' | 'find again' | 'write';
  id: number;
  /** The call is a guard whose session token was issued after the last deletion of the user. */
  hasNewToken: boolean;
  /** The cache did not respond to the read. */
  skipsCache: boolean;
  /** The deadline has passed: the caller has an error, but the statements continue. */
  isLate: boolean;
  /** A database trigger has rejected the insert, because the id is a previous id. The call repeats its registration. */
  isRepeated: boolean;
}

export interface State {
  /** The ids of the user's rows and of the user's deleted rows. */
  rows: number[];
  deleted: number[];
  /** Number of ids that were generated. */
  ids: number;
  /** For each of the provider's ids: the cached id or 0, whether it was cached during a run of `forget`, and the mark. */
  names: { cached: number; cachedDuringForget: boolean; isForgotten: boolean }[];
  /** The provider's id that the row contains. */
  present: Name;
  /** State of the other id. After a move, it is a previous id, which the service accepts until it expires. */
  previous: 'none' | 'not stored' | 'valid' | 'expired';
  /** The next step of a run of `forget`. `store` occurs only with the weakness that marks the user later. */
  forget: 'uncache first' | 'delete' | 'store' | 'uncache' | 'wait' | 'uncache last' | null;
  /** A run of `forget` has deleted a row. Since then, no run has reported success. */
  isForgetting: boolean;
  /** The row was inserted by a call without a token that is newer than the last deletion. */
  hasOldRow: boolean;
  /** A token that is newer than the deletion was rejected. */
  isRejected: boolean;
  /** A call with an id of a linked user has found no user. */
  isLost: boolean;
  /** The ids that callers got, and how many registrations reported `created`. */
  returned: number[];
  created: number;
  isAcknowledged: boolean;
  calls: Call[];
  isCacheUp: boolean;
  left: Bounds;
}

const initialState = (left: Bounds): State => ({
  ...{ rows: [], deleted: [], ids: 0, present: 0, previous: 'none', forget: null, isForgetting: false },
  names: NAMES.map(() => ({ cached: 0, cachedDuringForget: false, isForgotten: false })),
  ...{ hasOldRow: false, isRejected: false, isLost: false, returned: [], created: 0, isAcknowledged: false },
  ...{ calls: [], isCacheUp: true, left },
});

/** Copies a state. Copying the known fields is several times faster than `structuredClone`. */
const copy = (state: State): State => ({
  ...state,
  ...{ rows: [...state.rows], deleted: [...state.deleted], returned: [...state.returned] },
  names: state.names.map((name) => ({ ...name })),
  calls: state.calls.map((call) => ({ ...call })),
});

function brokenGuarantee(state: State): string | undefined {
  const { rows, deleted, names, returned, isForgetting } = state;
  const isForgotten = names.some((name) => name.isForgotten);
  const links = 1 + deleted.length;
  if (rows.length > 1 || new Set([...rows, ...deleted, ...returned]).size > links)
    return 'the user has one id until an operator forgets the user';
  if (state.created > links) return 'at most one response per link reports created';
  if (state.isAcknowledged && rows.length + deleted.length === 0 && !isForgotten)
    return 'the user of an acknowledged webhook has a row, or an operator has forgotten the user';
  if (isForgotten && state.hasOldRow && rows.length > 0)
    return 'only a newer token links a forgotten user again';
  if (state.isRejected) return 'a newer token is not rejected';
  if (state.isLost) return 'a linked user is found by each of the ids at the provider';
  const isStale = ({ cached, cachedDuringForget }: State['names'][number]) =>
    cached !== 0 && !rows.includes(cached) && !(isForgetting && cachedDuringForget);
  if (names.some(isStale))
    return 'a cached id has a row, except for entries that requests write while an operator forgets the user';
  return undefined;
}

/** Returns the model. `weakness` is a change of the service that breaks a guarantee. */
export function linkModel(bounds: Bounds, weakness?: Weakness): Model<State> {
  const isWeak = (name: Weakness) => name === weakness;
  const newId = (state: State) => ++state.ids;
  const hasPrevious = ({ previous }: State) => previous === 'valid' || previous === 'expired';
  const isForgotten = (state: State, { name, hasNewToken }: Call) =>
    state.names[name]?.isForgotten === true && !hasNewToken;
  const end = (state: State, call: Call) => {
    state.calls = state.calls.filter((each) => each !== call);
  };

  function respond(state: State, call: Call): void {
    end(state, call);
    if (call.isLate) return;
    if (call.kind === 'webhook') state.isAcknowledged = true;
    if (!state.returned.includes(call.id)) state.returned.push(call.id);
  }

  function fail(state: State, call: Call): void {
    end(state, call);
    if (isWeak('the webhook is acknowledged after a failed registration') && call.kind === 'webhook')
      state.isAcknowledged = true;
  }

  /** Responds to a call whose user is forgotten. */
  function forgotten(state: State, call: Call): void {
    end(state, call);
    if (call.isLate) return;
    if (call.kind === 'webhook') state.isAcknowledged = true;
    if (call.hasNewToken) state.isRejected = true;
  }

  function registered(state: State, call: Call, id: number, created: boolean): void {
    if (created && !call.isLate) state.created += 1;
    call.id = id;
    const mayWrite = !call.isLate || isWeak('a lookup writes to the cache after its deadline');
    if (call.kind === 'guard' && !call.skipsCache && mayWrite) call.at = 'write';
    else respond(state, call);
  }

  function write(state: State, call: Call): void {
    if (!state.isCacheUp) return;
    const cachedDuringForget = state.isForgetting || state.forget !== null;
    Object.assign(state.names[call.name] ?? {}, { cached: call.id, cachedDuringForget });
  }

  /** Returns the row that a lookup finds by an id of the provider. Returns `expired` for an expired previous id. */
  function rowOf(state: State, name: Name): number | 'expired' | undefined {
    if (name === state.present) return state.rows[0];
    if (!hasPrevious(state) || isWeak('the lookup does not read previous ids')) return undefined;
    if (state.previous === 'valid') return state.rows[0];
    return isWeak('the insert does not check expired previous ids') ? undefined : 'expired';
  }

  /** Returns true if a database trigger rejects an insert with this id, because it is a previous id. */
  const isPrevious = (state: State, name: Name) =>
    name !== state.present &&
    hasPrevious(state) &&
    !isWeak('the insert does not check previous ids') &&
    !(isWeak('the insert does not check expired previous ids') && state.previous === 'expired');

  /**
   * Inserts a row, unless there is one. Inserts no row for a previous id, nor for a forgotten user without a newer token. The
   * statement is atomic, so no other step can happen between these checks and the insert.
   */
  function insert(state: State, call: Call): void {
    const hasRow = state.rows.length > 0 && call.name === state.present;
    if (isForgotten(state, call) && !isWeak('the insert does not check forgotten users')) {
      call.at = 'find again';
    } else if (isPrevious(state, call.name)) {
      // The call repeats its registration once. A second rejection breaks a guarantee.
      if (call.isRepeated) {
        state.isLost = true;
        fail(state, call);
      } else Object.assign(call, { at: 'find', isRepeated: true });
    } else if (isWeak('the cache is written before the commit') && call.kind === 'guard' && call.id === 0) {
      call.id = newId(state);
      write(state, call);
    } else if (hasRow && !isWeak('no unique key')) {
      call.at = 'find again';
    } else {
      const id = call.id === 0 ? newId(state) : call.id;
      state.rows.push(id);
      state.hasOldRow = !call.hasNewToken;
      registered(state, call, id, true);
    }
  }

  /** Runs the next statement or command of a call. */
  function advance(state: State, call: Call): void {
    const cached = state.names[call.name]?.cached ?? 0;
    const row = rowOf(state, call.name);
    if (call.at === 'read') {
      if (!state.isCacheUp || cached === 0) Object.assign(call, { at: 'find', skipsCache: !state.isCacheUp });
      else {
        call.id = cached;
        if (isWeak('a cache hit writes the entry again')) call.at = 'write';
        else respond(state, call);
      }
    } else if (call.at === 'insert') insert(state, call);
    else if (call.at === 'write') {
      write(state, call);
      respond(state, call);
    } else if (row === 'expired') end(state, call);
    else if (row !== undefined) {
      const isCreated = call.at === 'find again' && isWeak('a call that lost the race reports created');
      registered(state, call, row, isCreated);
    } else if (call.at === 'find') call.at = 'insert';
    // The insert was skipped for a forgotten user, or another call inserted a row that an operator has deleted since.
    else forgotten(state, call);
  }

  /** Runs the statement of a call. The response is lost, so the call fails. */
  function loseResponse(state: State, call: Call): void {
    if (call.at === 'insert' && state.rows.length === 0 && !isForgotten(state, call)) {
      state.rows = [newId(state)];
      state.hasOldRow = !call.hasNewToken;
    }
    fail(state, call);
  }

  /** Moves the user to the id at the other instance. The row and the previous id change in one transaction. */
  function relink(state: State): void {
    state.present = state.present === 0 ? 1 : 0;
    state.previous = isWeak('relink stores the previous id after the move') ? 'not stored' : 'valid';
  }

  /** Marks the user as forgotten. The tokens of the calls in progress are then older than the deletion. */
  function storeForgotten(state: State): void {
    for (const name of NAMES) {
      const isMarked = name === state.present || !isWeak('forget marks only one id of the user as forgotten');
      if (isMarked && (name === state.present || state.previous !== 'none'))
        Object.assign(state.names[name] ?? {}, { isForgotten: true });
    }
    state.previous = 'none';
    for (const call of state.calls) call.hasNewToken = false;
  }

  function uncache(state: State): void {
    if (!state.isCacheUp) return;
    for (const [name, entry] of state.names.entries())
      if (name === state.present || !isWeak('forget deletes only one of the cache entries of the user'))
        Object.assign(entry, { cached: 0, cachedDuringForget: false });
  }

  /** Runs the next step of `forget`. If the cache is down, the first step ends the command, and a later one has no effect. */
  function advanceForget(state: State): void {
    if (state.forget === 'uncache first') {
      const isLater = isWeak('forget deletes the row before the cache entry');
      state.forget = isLater || state.isCacheUp ? 'delete' : null;
      if (!isLater) uncache(state);
    } else if (state.forget === 'delete') {
      if (state.rows.length > 0) state.isForgetting = true;
      state.deleted.push(...state.rows);
      state.rows = [];
      const isLater = isWeak('forget marks the user as forgotten after the deletion');
      if (!isLater) storeForgotten(state);
      state.forget = isLater ? 'store' : 'uncache';
    } else if (state.forget === 'store') {
      storeForgotten(state);
      state.forget = 'uncache';
    } else if (state.forget === 'uncache') {
      uncache(state);
      state.forget = 'wait';
    } else if (state.forget === 'wait') state.forget = 'uncache last';
    else {
      if (!isWeak('forget does not delete the cache entry again after it has waited for lookups'))
        uncache(state);
      if (state.isCacheUp) state.isForgetting = false;
      state.forget = null;
    }
  }

  /** `forget` waits for longer than the deadline of a lookup, so no lookup writes the deleted id to the cache afterwards. */
  const isWaiting = ({ forget, calls, rows }: State) =>
    forget === 'wait' &&
    !isWeak('forget does not wait for lookups') &&
    calls.some(({ at, isLate, id }) => at === 'write' && !isLate && !rows.includes(id));

  function steps(state: State): Step<State>[] {
    const found: Step<State>[] = [];
    const add = (label: string, change: (next: State) => unknown) => {
      const next = copy(state);
      change(next);
      // The order of the calls has no meaning. Sorting makes states with the same calls equal.
      next.calls.sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
      found.push({ label, next });
    };
    const addLimited = (kind: keyof Bounds, label: string, change: (next: State) => unknown) => {
      if (state.left[kind] === 0) return;
      add(label, (next) => {
        next.left = { ...next.left, [kind]: next.left[kind] - 1 };
        change(next);
      });
    };
    const set = (change: Partial<State>) => (next: State) => Object.assign(next, change);
    const { present, previous, names, rows } = state;
    const start = (kind: Call['kind'], name: Name, hasNewToken: boolean) =>
      addLimited(kind, `${kind} by id ${name}${hasNewToken ? ' with a newer token' : ''}`, (next) => {
        const at = kind === 'guard' ? 'read' : 'find';
        const flags = { skipsCache: false, isLate: false, isRepeated: false };
        next.calls.push({ kind, name, at, id: 0, hasNewToken, ...flags });
        if (kind === 'webhook' && isWeak('the webhook is acknowledged before the commit'))
          next.isAcknowledged = true;
      });
    // Before a user moves, the new instance of the provider has no sessions of the user and sends no events about the user.
    const hasMoved = present === 1 || previous !== 'none' || names[1]?.isForgotten;
    for (const name of NAMES.slice(0, hasMoved ? 2 : 1)) {
      for (const kind of KINDS) start(kind, name, false);
      // After a deletion, only the present id of a user has tokens that are newer than the deletion.
      if (names[name]?.isForgotten && name === present) start('guard', name, true);
    }
    if (rows.length > 0 && !names[present === 0 ? 1 : 0]?.isForgotten && previous !== 'not stored')
      addLimited('relink', 'relink', relink);
    if (previous === 'not stored') add('relink stores the previous id', set({ previous: 'valid' }));
    if (previous === 'valid') add('the previous id expires', set({ previous: 'expired' }));
    for (const name of NAMES)
      if (names[name]?.cached)
        add(`the cached id of ${name} expires`, (next) =>
          Object.assign(next.names[name] ?? {}, { cached: 0, cachedDuringForget: false }),
        );
    for (const [index, { kind, name, at, isLate }] of state.calls.entries()) {
      const label = `${kind} by id ${name}: ${at}`;
      const withCall = (change: (next: State, call: Call) => void) => (next: State) => {
        const call = next.calls[index];
        if (call !== undefined) change(next, call);
      };
      add(label, withCall(advance));
      addLimited('crash', `${label}, crash`, withCall(end));
      if (at === 'read' || at === 'write') continue;
      addLimited('lostResponse', `${label}, response lost`, withCall(loseResponse));
      const exceedDeadline = (next: State, call: Call) => {
        fail(next, call);
        next.calls.push({ ...call, isLate: true });
      };
      if (!isLate) addLimited('timeout', `${label}, deadline exceeded`, withCall(exceedDeadline));
    }
    if (state.forget === null) addLimited('forget', 'forget', set({ forget: 'uncache first' }));
    else {
      if (!isWaiting(state)) add(`forget: ${state.forget}`, advanceForget);
      addLimited('crash', 'forget crashes', set({ forget: null }));
    }
    if (state.isCacheUp) addLimited('outage', 'the cache does not respond', set({ isCacheUp: false }));
    else add('the cache responds again', set({ isCacheUp: true }));
    return found;
  }

  return { initial: initialState(bounds), steps, brokenGuarantee };
}

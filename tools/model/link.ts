import type { Model, Step } from './explore';
import {
  type Bounds,
  brokenGuarantee,
  type Call,
  copy,
  type Forget,
  isAlike,
  isRegistering,
  type Kind,
  NAMES,
  type Name,
  newId,
  newUser,
  REGISTERING,
  rank,
  remove,
  type State,
  sharingGuards,
  sharingRegistration,
  type UserState,
  uncache,
  userOf,
  type Weakness,
} from './state';

// Models how the service links identity-provider users to internal ids: lib/register.ts, lib/user-id.ts, lib/webhook.ts,
// lib/users/forget.ts and lib/users/relink.ts. A step is one statement of the database, one command of the cache, or one
// failure. PostgreSQL and the cache run each statement or command atomically. Between two steps of a call, any other step can
// happen. A guard is a request with a session. A registration finds or inserts the row of a user. Concurrent calls for the
// same id in one process share the result of one call (single-flight).
//
// `users:forget` deletes a user. After that, only a token that is newer than the deletion links this forgotten user again.
// `users:relink` moves a user from the old instance of the provider to the new instance, or back. The two instances have
// different ids for the user. The id before the move becomes a previous id, which expires.

/** Returns the model. `weakness` is a change of the service that breaks a guarantee. */
export function linkModel({ users, processes, ...left }: Bounds, weakness?: Weakness): Model<State> {
  const isWeak = (name: Weakness) => name === weakness;

  /** Responds to the client of a call. If the call is a guard, also responds to the guards that share its result. */
  function respond(state: State, call: Call): void {
    const user = userOf(state, call);
    remove(state, call);
    for (const each of sharingGuards(state, call)) remove(state, each);
    if (call.kind === 'webhook') user.isAcknowledged = true;
    if (!user.returned.includes(call.id)) user.returned.push(call.id);
  }

  /** Responds with an error to a call and to the calls that share its result. */
  function fail(state: State, call: Call): void {
    remove(state, call);
    if (call.isLate) return;
    if (isWeak('the webhook is acknowledged after a failed registration') && call.kind === 'webhook')
      userOf(state, call).isAcknowledged = true;
    for (const each of sharingRegistration(state, call)) fail(state, each);
    for (const each of sharingGuards(state, call)) remove(state, each);
  }

  /**
   * Responds to a call whose user is forgotten. A guard that shares this result repeats its steps without sharing a result,
   * because its token may be newer than the deletion. A webhook or a call of the register route does not repeat its steps,
   * because it has no token of the user.
   */
  function forgotten(state: State, call: Call): void {
    const user = userOf(state, call);
    const guards = sharingGuards(state, call);
    const registrations = sharingRegistration(state, call);
    remove(state, call);
    if (call.isLate) return;
    if (call.kind === 'webhook') user.isAcknowledged = true;
    if (call.hasNewToken) user.isRejected = true;
    const isRepeated = !isWeak(
      'a guard that shares a result for a forgotten user does not try its own token',
    );
    for (const each of registrations) {
      if (isRepeated && each.kind === 'guard') Object.assign(each, { at: 'find', registersAlone: true });
      else forgotten(state, each);
    }
    for (const each of guards) {
      if (isRepeated) Object.assign(each, { at: 'read', guardsAlone: true });
      else forgotten(state, each);
    }
  }

  /** Ends the registration of a call and of the calls that share its result. */
  function registered(state: State, call: Call, id: number, created: boolean): void {
    const sharers = sharingRegistration(state, call);
    const isForAll = isWeak('single-flight reports created to all callers');
    for (const each of [call, ...sharers]) {
      if (created && (each === call || isForAll) && !each.isLate) userOf(state, each).created += 1;
      Object.assign(each, { id, created: false });
      const writesLate = isWeak('a lookup writes to the cache after its deadline');
      if (each.isLate && !(writesLate && each.kind === 'guard')) remove(state, each);
      else if (each.kind === 'guard' && !each.skipsCache) each.at = 'write';
      else respond(state, each);
    }
  }

  function write(state: State, call: Call): void {
    if (!state.isCacheUp) return;
    const user = userOf(state, call);
    const cachedDuringForget = user.isForgetting || state.forget?.user === call.user;
    Object.assign(user.names[call.name], { cached: call.id, cachedDuringForget });
  }

  /** Starts the registration of a call, or shares the result of a registration in flight. */
  function startRegister(state: State, call: Call): void {
    const leads = (each: Call) => isRegistering(each) && !each.registersAlone && isAlike(each, call);
    call.at = state.calls.some(leads) ? 'shares register' : 'find';
  }

  function start(
    state: State,
    kind: Kind,
    { user, name, process }: Pick<Call, 'user' | 'name' | 'process'>,
    hasNewToken = false,
  ): void {
    const call: Call = {
      ...{ kind, user, name, process, at: 'read', id: 0, created: false, hasNewToken },
      ...{ skipsCache: false, isLate: false, guardsAlone: false, registersAlone: false, isRepeated: false },
    };
    if (kind === 'guard') {
      const leads = (each: Call) => each.kind === 'guard' && isAlike(each, call) && !each.guardsAlone;
      if (state.calls.some((each) => leads(each) && !each.isLate)) call.at = 'shares guard';
    } else startRegister(state, call);
    if (kind === 'webhook' && isWeak('the webhook is acknowledged before the commit'))
      userOf(state, call).isAcknowledged = true;
    state.calls.push(call);
  }

  /** Returns the row that a lookup finds by the id of a call. Returns `expired` for a previous id that has expired. */
  function rowOf(user: UserState, name: Name): number | 'expired' | undefined {
    if (name === user.present) return user.rows[0];
    if (isWeak('the lookup does not read previous ids') || user.previous === 'none') return undefined;
    if (user.previous === 'valid') return user.rows[0];
    return isWeak('the insert does not check expired previous ids') ? undefined : 'expired';
  }

  /** Returns true if the id of the call is a previous id. A database trigger rejects an insert with a previous id. */
  const isPrevious = (user: UserState, { name }: Call) =>
    name !== user.present &&
    user.previous !== 'none' &&
    !isWeak('the insert does not check previous ids') &&
    !(isWeak('the insert does not check expired previous ids') && user.previous === 'expired');

  /** Rejects a call whose id is an expired previous id. Also rejects the calls that share the result of this call. */
  function rejectExpired(state: State, call: Call): void {
    const others = [...sharingGuards(state, call), ...sharingRegistration(state, call)];
    remove(state, call);
    for (const each of others) rejectExpired(state, each);
  }

  /** Repeats a registration whose insert was rejected because of a previous id. A second rejection breaks a guarantee. */
  function repeat(state: State, call: Call): void {
    if (call.isRepeated) {
      userOf(state, call).isLost = true;
      fail(state, call);
    } else Object.assign(call, { at: 'find', isRepeated: true });
  }

  /** Moves a user to the id at the other instance. The row and the previous id change in one transaction. */
  function relink(state: State, index: number): void {
    const user = userOf(state, { user: index });
    user.present = user.present === 0 ? 1 : 0;
    if (isWeak('relink stores the previous id after the move')) {
      user.previous = 'none';
      state.relink = index;
    } else user.previous = 'valid';
  }

  /**
   * Inserts a row for a user without a row. Does not insert a row if the id is a previous id. For a forgotten user, inserts a
   * row only if the token of the call is newer than the deletion. The statement is atomic, so no other step can happen between
   * these checks and the insert.
   */
  function insert(state: State, call: Call): void {
    const user = userOf(state, call);
    const isSkipped = user.names[call.name].isForgotten && !call.hasNewToken;
    if (isSkipped && !isWeak('the insert does not check forgotten users')) {
      call.at = 'find again';
      return;
    }
    if (isPrevious(user, call)) {
      repeat(state, call);
      return;
    }
    const hasRow = user.rows.length > 0 && call.name === user.present;
    if (isWeak('the cache is written before the commit') && call.kind === 'guard' && call.id === 0) {
      call.id = newId(user);
      write(state, call);
    } else if (hasRow && isWeak('a call that lost the race returns the id that it did not insert')) {
      registered(state, call, newId(user), false);
    } else if (hasRow && !isWeak('no unique key') && !isWeak('the insert replaces the row')) {
      call.at = 'find again';
    } else {
      const id = call.id === 0 ? newId(user) : call.id;
      const isSecond = isWeak('no unique key') || (user.rows.length > 0 && !hasRow);
      user.rows = isSecond ? [...user.rows, id] : [id];
      user.hasOldRow = !call.hasNewToken;
      registered(state, call, id, true);
    }
  }

  /** Runs the next statement or command of a call. */
  function advance(state: State, call: Call): void {
    const user = userOf(state, call);
    const row = rowOf(user, call.name);
    const { cached } = user.names[call.name];
    if (call.at === 'read') {
      if (state.isCacheUp && cached !== 0) {
        call.id = cached;
        if (isWeak('a cache hit writes the entry again')) call.at = 'write';
        else respond(state, call);
      } else {
        call.skipsCache = !state.isCacheUp;
        startRegister(state, call);
      }
    } else if (call.at === 'find') {
      if (row === 'expired') rejectExpired(state, call);
      else if (row !== undefined) registered(state, call, row, false);
      else {
        call.at = 'insert';
        call.created = isWeak('a call that lost the race reports created');
      }
    } else if (call.at === 'insert') insert(state, call);
    else if (call.at === 'find again') {
      // There is no row if the insert was skipped for a forgotten user. There is also no row if another call inserted the row
      // and an operator has forgotten the user since.
      if (row === 'expired') rejectExpired(state, call);
      else if (row === undefined) forgotten(state, call);
      else registered(state, call, row, call.created);
    } else {
      write(state, call);
      if (call.isLate) remove(state, call);
      else respond(state, call);
    }
  }

  /** Returns the ids of the provider that a user has or had. */
  const namesOf = ({ present, previous }: UserState) =>
    NAMES.filter((name) => name === present || previous !== 'none');

  /** Stores that the user is forgotten. The tokens of the calls in flight are then older than the deletion. */
  function storeForgotten(state: State, user: UserState, forget: Forget): void {
    for (const name of namesOf(user)) {
      if (name === user.present || !isWeak('forget marks only one id of the user as forgotten'))
        user.names[name].isForgotten = true;
    }
    user.previous = 'none';
    for (const call of state.calls) if (call.user === forget.user) call.hasNewToken = false;
  }

  /**
   * Runs the next step of `users:forget`. If the cache is down at the first step, the command ends. If the cache is down at a
   * later step, the command continues and does not delete the cached ids in this step.
   */
  function advanceForget(state: State, forget: Forget): void {
    const user = userOf(state, forget);
    const tryUncache = () => {
      if (!state.isCacheUp) return;
      for (const name of NAMES)
        if (name === user.present || !isWeak('forget deletes only one of the cache entries of the user'))
          uncache(user.names[name]);
    };
    if (forget.at === 'uncache first') {
      if (isWeak('forget deletes the row before the cache entry') || state.isCacheUp) forget.at = 'delete';
      else state.forget = null;
      if (!isWeak('forget deletes the row before the cache entry')) tryUncache();
    } else if (forget.at === 'delete') {
      if (user.rows.length > 0) user.isForgetting = true;
      user.deleted.push(...user.rows);
      user.rows = [];
      const isLater = isWeak('forget marks the user as forgotten after the deletion');
      if (!isLater) storeForgotten(state, user, forget);
      forget.at = isLater ? 'store' : 'uncache';
    } else if (forget.at === 'store') {
      storeForgotten(state, user, forget);
      forget.at = 'uncache';
    } else if (forget.at === 'uncache') {
      tryUncache();
      forget.at = 'wait';
    } else if (forget.at === 'wait') forget.at = 'uncache last';
    else {
      if (!isWeak('forget does not delete the cache entry again after it has waited for lookups'))
        tryUncache();
      if (state.isCacheUp) user.isForgetting = false;
      state.forget = null;
    }
  }

  /**
   * Returns true while a call can still write the deleted id to the cache. `users:forget` pauses for longer than the deadline
   * of a lookup, so no such write happens after the pause.
   */
  const isWaiting = (state: State, forget: Forget) =>
    forget.at === 'wait' &&
    !isWeak('forget does not wait for lookups') &&
    state.calls.some(
      (call) =>
        call.user === forget.user &&
        call.at === 'write' &&
        !call.isLate &&
        !userOf(state, forget).rows.includes(call.id),
    );

  function steps(state: State): Step<State>[] {
    const found: Step<State>[] = [];
    const add = (label: string, change: (next: State) => void) => {
      const next: State = copy(state);
      change(next);
      // The order of the calls has no meaning. Sorting makes states with the same calls equal.
      if (next.calls.length > 1) next.calls.sort((one, other) => (rank(one) < rank(other) ? -1 : 1));
      found.push({ label, next });
    };
    const addLimited = (name: keyof State['left'], label: string, change: (next: State) => void) => {
      if (state.left[name] === 0) return;
      add(label, (next) => {
        next.left = { ...next.left, [name]: next.left[name] - 1 };
        change(next);
      });
    };
    const busy = new Set(state.calls.map(({ process }) => process));
    // Processes without calls are equivalent, so it is sufficient to start a call in one of them.
    const idle = Array.from({ length: processes }, (_, process) => process).filter((each) => !busy.has(each));

    for (const [user, { present, previous, names, rows }] of state.users.entries()) {
      // Before a user moves, the new instance of the provider has no sessions of the user and sends no events about the user.
      // After a deletion, only the present id of a user has tokens that are newer than the deletion.
      const hasMoved = present === 1 || previous !== 'none' || names[1].isForgotten;
      for (const process of [...busy, ...idle.slice(0, 1)]) {
        for (const name of NAMES.slice(0, hasMoved ? 2 : 1)) {
          const where = `user ${user}, process ${process}`;
          const by = name === 0 ? '' : ' by the new id';
          const from = { user, name, process };
          addLimited('guards', `${where}: guard${by}`, (next) => start(next, 'guard', from));
          if (names[name].isForgotten && name === present)
            addLimited('guards', `${where}: guard${by} with a newer token`, (next) =>
              start(next, 'guard', from, true),
            );
          addLimited('registers', `${where}: register${by}`, (next) => start(next, 'register', from));
          addLimited('deliveries', `${where}: webhook${by}`, (next) => start(next, 'webhook', from));
        }
      }
      if (rows.length > 0 && !names[present === 0 ? 1 : 0].isForgotten && state.relink === null)
        addLimited('relinks', `user ${user}: relink`, (next) => relink(next, user));
      if (previous === 'valid')
        add(`user ${user}: the previous id expires`, (next) => {
          userOf(next, { user }).previous = 'expired';
        });
      if (state.forget === null)
        addLimited('forgets', `user ${user}: forget`, (next) => {
          next.forget = { user, at: 'uncache first' };
        });
      for (const name of NAMES)
        if (names[name].cached !== 0)
          add(`user ${user}: the cache entry of the ${name === 0 ? 'old' : 'new'} id expires`, (next) =>
            uncache(next.users[user]?.names[name]),
          );
    }
    for (const [index, { kind, user, name, process, at, isLate }] of state.calls.entries()) {
      if (at.startsWith('shares')) continue;
      const where = `user ${user}, process ${process}: ${kind}${name === 0 ? '' : ' by the new id'}`;
      const withCall = (change: (next: State, call: Call) => void) => (next: State) => {
        const call = next.calls[index];
        if (call !== undefined) change(next, call);
      };
      add(`${where} ${at}`, withCall(advance));
      if (!REGISTERING.includes(at)) continue;
      addLimited(
        'lostResponses',
        `${where} ${at}, response lost`,
        withCall((next, call) => {
          const user = userOf(next, call);
          const isSkipped = user.names[call.name].isForgotten && !call.hasNewToken;
          if (at === 'insert' && user.rows.length === 0 && !isSkipped) {
            user.rows = [newId(user)];
            user.hasOldRow = !call.hasNewToken;
          }
          fail(next, call);
        }),
      );
      if (isLate) continue;
      addLimited(
        'timeouts',
        `${where} exceeds its deadline`,
        withCall((next, call) => {
          const late = { ...call, isLate: true };
          fail(next, call);
          next.calls.push(late);
        }),
      );
    }
    const { forget, relink: moving } = state;
    if (moving !== null)
      add(`user ${moving}: relink stores the previous id`, (next) => {
        userOf(next, { user: moving }).previous = 'valid';
        next.relink = null;
      });
    if (forget !== null) {
      if (!isWaiting(state, forget))
        add(`user ${forget.user}: forget ${forget.at}`, (next) => {
          if (next.forget !== null) advanceForget(next, next.forget);
        });
      addLimited('crashes', 'the command of the operator crashes', (next) => {
        next.forget = null;
      });
    }
    for (const process of busy)
      addLimited('crashes', `process ${process} crashes`, (next) => {
        next.calls = next.calls.filter((call) => call.process !== process);
      });
    if (!state.isCacheUp)
      add('the cache responds again', (next) => {
        next.isCacheUp = true;
      });
    else
      addLimited('outages', 'the cache does not respond', (next) => {
        next.isCacheUp = false;
      });
    return found;
  }

  return {
    initial: {
      users: Array.from({ length: users }, newUser),
      calls: [],
      forget: null,
      relink: null,
      isCacheUp: true,
      left,
    },
    steps,
    brokenGuarantee,
  };
}

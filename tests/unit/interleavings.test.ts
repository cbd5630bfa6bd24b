import { AsyncLocalStorage } from 'node:async_hooks';
import { beforeAll, expect, test, vi } from 'vitest';
import type { RequestLogFields } from '#lib/log';
import { linkModel } from '../../tools/model/link';
import type { Bounds, State, UserState } from '../../tools/model/state';
import { fakeStorage } from '../harness/fake-storage';

// Runs the real functions of lib/ with a fake database and a fake cache. Each database statement and each cache command waits
// until the test releases it, so that the test can run the statements and commands in every order. The model in tools/model
// describes the same functions as a state machine, and must have the same outcomes. A guarded request (`guard`) and a request
// to the register route (`register`) create the row of a user. An operator moves a user to another id at the provider
// (`relink`) or deletes the user (`forget`).

/** A statement or command that waits until the test releases it. */
interface Waiting {
  /** The call that waits, and the name of its statement or command. */
  readonly call: string | undefined;
  readonly name: string;
  readonly isEnabled: () => boolean;
  readonly run: () => void;
}
const waiting = new Set<Waiting>();
/** Name of the call that runs. */
const currentCall = new AsyncLocalStorage<string>();

/** Runs `statement` when the test releases it. The test releases it only while `isEnabled()` returns true. */
const schedule = <T>(name: string, statement: () => T, isEnabled = () => true) =>
  new Promise<void>((resolve) =>
    waiting.add({ call: currentCall.getStore(), name, isEnabled, run: resolve }),
  ).then(statement);

/**
 * The ids of the only user. An operator can move users from one instance of the identity provider to another (`relink`). The
 * user has `oldId` at the old instance and `newId` at the new one. The test simulates two processes with two copies of the
 * modules of lib/. Both copies serve all runs and may keep state for an id, so each run uses new ids.
 */
const user = { oldId: '', newId: '', runs: 0 };
const storage = fakeStorage(schedule);
const cacheKey = (user: string) => `auth:user-id-by-idp:${user}`;
/** Internal ids that calls are about to write to the cache. */
const writes: string[] = [];

vi.mock('#lib/linking/links', async (original) => ({
  ...(await original<typeof import('#lib/linking/links')>()),
  ...storage.links,
}));
vi.mock('#lib/linking/forgotten', () => storage.forgotten);
vi.mock('#lib/users/rows', async (original) => ({
  ...(await original<typeof import('#lib/users/rows')>()),
  ...storage.rows,
}));
vi.mock('#lib/storage/kv', () => ({
  withKv: (command: (kv: object) => unknown) =>
    command({
      ...storage.kv,
      set: async (key: string, id: string) => {
        writes.push(id);
        await storage.kv.set(key, id);
        writes.splice(writes.indexOf(id), 1);
      },
    }),
}));
vi.mock('#lib/env', async (original) => ({
  ...(await original<typeof import('#lib/env')>()),
  environment: () => ({ USER_ID_CACHE_TTL_SECONDS: 600 }),
}));

const rowId = () => storage.rowOf(user.oldId) ?? storage.rowOf(user.newId);

async function loadProcess() {
  vi.resetModules();
  const { withLogFields } = await import('#lib/log');
  const { resolveUserId } = await import('#lib/user-id');
  const { registerByIdentityProviderUserId } = await import('#lib/register');
  const { forget } = await import('#lib/users/forget');
  const guard = async (user: string) => {
    const fields: RequestLogFields = {};
    await withLogFields(fields, () => resolveUserId(user, () => undefined));
    return { created: fields.caller === 'created' };
  };
  return {
    guard: () => guard(user.oldId),
    'guard by the new id': () => guard(user.newId),
    register: () => registerByIdentityProviderUserId(user.oldId),
    /** The transaction that moves a user to the other id, or back. It has no effect after the deletion of the row. */
    relink: () => {
      const ids = () => {
        const { oldId, newId } = user;
        return storage.canMove(oldId, newId) ? ([oldId, newId] as const) : ([newId, oldId] as const);
      };
      return schedule(
        'move',
        () => storage.move(...ids()),
        () => storage.canMove(...ids()) || waiting.size === 1,
      );
    },
    forget: () => {
      // forget() deletes the row and then pauses. The real pause is so long that no call can still cache the id of the deleted
      // row afterwards. This pause lasts while a call is about to cache an id that no row has.
      const pause = () =>
        schedule(
          'pause',
          () => undefined,
          () => writes.every((id) => id === rowId()),
        );
      return forget(user.oldId, 30, pause);
    },
  };
}
type Process = Awaited<ReturnType<typeof loadProcess>>;
let processes: readonly Process[] = [];
beforeAll(async () => {
  processes = [await loadProcess(), await loadProcess()];
});

const iteration = () => new Promise((resolve) => setImmediate(resolve));

/**
 * Outcome of a run. The internal ids of a run are numbered 1, 2 and so on in the order of their creation. `ids` is how many
 * were created. `row` is the number of the id in the row. `cached` and `newCached` are the numbers of the ids that are cached
 * for the old and for the new id of the user at the provider. 0 means that there is no row or no cached id. `created` is how
 * many calls reported `created`.
 */
type Outcome = readonly [ids: number, row: number, cached: number, newCached: number, created: number];

/** The user before the calls: without a row, with a row, with a row and a cached id, or moved to the new id. */
type UserBefore = 'new' | 'known' | 'cached' | 'moved';

/** A call and the process that runs it. */
type Operation = readonly [kind: keyof Process, process: number];

/** Prepares the storage for a run. */
function reset(before: UserBefore): void {
  storage.reset();
  user.runs += 1;
  Object.assign(user, { oldId: `user_old_${user.runs}`, newId: `user_new_${user.runs}` });
  if (before === 'new') return;
  const [id = ''] = storage.insert(user.oldId);
  if (before === 'cached') storage.cached.set(cacheKey(user.oldId), id);
  if (before === 'moved') storage.move(user.oldId, user.newId);
}

interface Calls {
  readonly before: UserBefore;
  readonly calls: readonly Operation[];
  /**
   * Maximum number of interruptions, which limits the number of orders. Each step continues one call. A step is an interruption
   * if the call of the previous step could continue, but the step continues another call.
   */
  readonly interruptions: number | undefined;
}

/**
 * Starts the calls and releases one statement or command at each step. `choices` contains one index per step. The index selects
 * one of the statements and commands that can be released at this step. The default is 0. Returns how many could be released at
 * each step, the names of the released ones, and the outcome.
 */
async function run({ before, calls, interruptions }: Calls, choices: readonly number[]) {
  reset(before);
  let isDone = false;
  const started = calls.map(([kind, process], index) =>
    currentCall.run(`${index + 1}: ${kind}`, () => processes[process]?.[kind]()),
  );
  const results = Promise.all(started).finally(() => {
    isDone = true;
  });
  const alternatives: number[] = [];
  const trace: string[] = [];
  let interrupted = 0;
  let latest: string | undefined;
  for (;;) {
    // lib/concurrency/batch-loader.ts collects lookups and starts them in the next event loop iteration. A call waits for at
    // most one such iteration between two statements, so three are more than enough. After them, each call is done, or waits
    // for the test or for another call.
    for (let count = 0; count < 3; count += 1) await iteration();
    if (isDone) break;
    const enabled = [...waiting].filter(({ isEnabled }) => isEnabled());
    const same = enabled.filter(({ call }) => call === latest);
    const allowed = interrupted === interruptions && same.length > 0 ? same : enabled;
    const chosen = allowed[choices[alternatives.length] ?? 0];
    if (chosen === undefined)
      throw new Error('Some calls are not done, but the test can release none of them');
    alternatives.push(allowed.length);
    trace.push(`${chosen.call}: ${chosen.name}`);
    if (same.length > 0 && chosen.call !== latest) interrupted += 1;
    latest = chosen.call;
    waiting.delete(chosen);
    chosen.run();
  }
  const created = (await results).filter((result) => Object(result).created === true).length;
  const numberOf = (id = '') => Number(id.slice(-1));
  const [cached = 0, newCached = 0] = [user.oldId, user.newId].map((id) =>
    numberOf(storage.cached.get(cacheKey(id))),
  );
  const outcome: Outcome = [storage.insertedRows(), numberOf(rowId()), cached, newCached, created];
  return { alternatives, trace, outcome: outcome.join() };
}

/** Runs the calls once in each order of their statements and commands. Returns each outcome with one of its orders. */
async function runAll(calls: Calls): Promise<Map<string, readonly string[]>> {
  const outcomes = new Map<string, readonly string[]>();
  for (let choices: number[] | undefined = []; choices !== undefined; ) {
    const { alternatives, trace, outcome } = await run(calls, choices);
    if (!outcomes.has(outcome)) outcomes.set(outcome, trace);
    const taken = alternatives.map((_, index) => choices?.[index] ?? 0);
    const last = taken.findLastIndex((choice, index) => choice + 1 < (alternatives[index] ?? 0));
    choices = last === -1 ? undefined : [...taken.slice(0, last), (taken[last] ?? 0) + 1];
  }
  return outcomes;
}

/** Returns the outcomes of the model for the same calls. */
function outcomesOfModel({ before, calls }: Omit<Calls, 'interruptions'>): Set<string> {
  const count = (wanted: keyof Process) => calls.filter(([kind]) => kind === wanted).length;
  const bounds: Bounds = {
    ...{
      users: 1,
      processes: 2,
      guards: count('guard') + count('guard by the new id'),
      registers: count('register'),
      deliveries: 0,
    },
    ...{
      forgets: count('forget'),
      relinks: count('relink'),
      crashes: 0,
      outages: 0,
      lostResponses: 0,
      timeouts: 0,
    },
  };
  const model = linkModel(bounds);
  const users = model.initial.users.map((each): UserState => {
    if (before === 'new') return each;
    const [old, other] = each.names;
    return {
      ...{ ...each, rows: [1], ids: 1, names: [{ ...old, cached: before === 'cached' ? 1 : 0 }, other] },
      ...(before === 'moved' ? { present: 1, previous: 'valid' } : {}),
    };
  });
  let first: State = { ...model.initial, users };
  // Takes one step of the model for each call: the step in which the call starts. A relink has no such step, because its only
  // step is the transaction that moves the user.
  for (const [kind, process] of calls) {
    if (kind === 'relink') continue;
    const label = kind === 'forget' ? 'user 0: forget' : `user 0, process ${process}: ${kind}`;
    first = model.steps(first).find((step) => step.label === label)?.next ?? first;
  }
  const seen = new Set<string>();
  const outcomes = new Set<string>();
  const visit = (state: State) => {
    const key = JSON.stringify(state);
    if (seen.has(key)) return;
    seen.add(key);
    // The fake cache does not expire an id, so the steps of the model in which an id expires are left out.
    const steps = model.steps(state).filter(({ label }) => !label.endsWith('expires'));
    for (const { next } of steps) visit(next);
    if (steps.length > 0) return;
    for (const { ids, rows, names, created } of state.users)
      outcomes.add([ids, rows[0] ?? 0, names[0].cached, names[1].cached, created].join());
  };
  visit(first);
  return outcomes;
}

/**
 * A test: its name, the user before the calls, the maximum number of interruptions, and the calls. A test has a maximum if it
 * would otherwise have too many orders. A test with a maximum may miss an outcome of the model.
 */
type Case = [name: string, before: UserBefore, interruptions: number | undefined, ...calls: Operation[]];

test.each<Case>([
  ['guards of two processes', 'new', undefined, ['guard', 0], ['guard', 1]],
  ['guard and register of one process', 'new', undefined, ['guard', 0], ['register', 0]],
  [
    'guard and register of one process, and register of the other',
    'new',
    undefined,
    ['guard', 0],
    ['register', 0],
    ['register', 1],
  ],
  [
    'guard, two registers and forget',
    'new',
    1,
    ['guard', 0],
    ['register', 0],
    ['register', 1],
    ['forget', 1],
  ],
  ['guard and forget', 'known', undefined, ['guard', 0], ['forget', 1]],
  ['guard, register and forget', 'known', undefined, ['guard', 0], ['register', 0], ['forget', 1]],
  ['guard, register and forget', 'cached', 3, ['guard', 0], ['register', 1], ['forget', 1]],
  ['guard, register and relink', 'known', undefined, ['guard', 0], ['register', 1], ['relink', 1]],
  ['guard, relink and forget', 'known', 3, ['guard by the new id', 0], ['relink', 1], ['forget', 1]],
  [
    'guards and a relink back to the old id',
    'moved',
    undefined,
    ['guard', 0],
    ['guard by the new id', 1],
    ['relink', 1],
  ],
  ['guard by the old id and forget', 'moved', undefined, ['guard', 0], ['forget', 1]],
  ['guard by the new id and forget', 'moved', undefined, ['guard by the new id', 0], ['forget', 1]],
  ['register and relink', 'new', undefined, ['register', 0], ['register', 1], ['relink', 1]],
])(
  'The functions of lib/ and the model have the same outcomes for the orders of these calls: %s (user: %s)',
  async (_name, before, interruptions, ...calls) => {
    const outcomes = await runAll({ before, calls, interruptions });
    const expected = outcomesOfModel({ before, calls });
    expect([...outcomes].filter(([outcome]) => !expected.has(outcome))).toEqual([]);
    const missing = [...expected].filter((outcome) => !outcomes.has(outcome));
    expect(interruptions === undefined ? missing : []).toEqual([]);
  },
);

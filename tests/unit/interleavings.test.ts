import { beforeAll, expect, test, vi } from 'vitest';
import type { RequestLogFields } from '#lib/log';
import { linkModel } from '../../tools/model/link';
import type { Bounds, State, UserState } from '../../tools/model/state';

// Runs the real functions of lib/ with a fake database and a fake cache. Each call of a fake waits until the test releases
// it, so that the test can run every order of the calls. The model in tools/model describes the same functions as a state
// machine, and must have the same outcomes. A guarded request (`guard`) and a request to the register route (`register`) create
// the row of a user. An operator moves a user to another id at the provider (`relink`) or deletes the user (`forget`).

interface Waiting {
  readonly isEnabled: () => boolean;
  readonly run: () => void;
}

/** The ids of the only user at the old and at the new instance of the provider. */
const [OLD_ID, NEW_ID] = ['user_old', 'user_new'];
/**
 * State of the fakes: the row and the ids of the only user, the cached ids, the number of internal ids so far, and the waiting
 * calls.
 */
const world = {
  row: '',
  present: OLD_ID,
  hasPrevious: false,
  forgotten: new Set<string>(),
  cached: new Map<string, string>(),
  ids: 0,
  waiting: new Set<Waiting>(),
};
/** Returns true if `id` is the present or the previous id of the user's row. */
const hasId = (id: string) => world.row !== '' && (id === world.present || world.hasPrevious);
const cacheKey = (user: string) => `auth:user-id-by-idp:${user}`;
/** Returns the internal id with this number. */
const idOf = (count: number) => `00000000-0000-7000-8000-00000000000${count}`;

/** Ids that lookups are about to write to the cache. */
const writes: string[] = [];

/** Waits until the test releases the call. The test releases it only while `isEnabled()` returns true. */
const released = <T>(run: () => T, isEnabled = () => true) =>
  new Promise<T>((resolve) => world.waiting.add({ isEnabled, run: () => resolve(run()) }));

vi.mock('#lib/linking/links', () => ({
  linkedUserIds: ([user = '']: readonly string[]) =>
    released(() => new Map(hasId(user) ? [[user, world.row]] : [])),
  insertLinks: async ([user = '']: readonly string[]) => {
    const inserted = await released(() => {
      if (world.forgotten.has(user) || (world.row !== '' && user === world.present)) return [];
      if (hasId(user)) return undefined;
      world.ids += 1;
      Object.assign(world, { row: idOf(world.ids), present: user });
      return [world.row];
    });
    if (inserted === undefined) throw new Conflict();
    return inserted;
  },
  retryOnConflict: async (work: () => Promise<unknown>) => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Conflict) return work();
      throw error;
    }
  },
}));
vi.mock('#lib/linking/forgotten', () => ({
  forgottenUntil: async ([user = '']: readonly string[]) =>
    new Map(world.forgotten.has(user) ? [[user, 1]] : []),
}));
vi.mock('#lib/users/rows', () => ({
  findLinks: async () => [],
  allIdsOf: () => [],
  deleteLink: () =>
    released(() => {
      const ids = [OLD_ID, NEW_ID].filter((id) => id === world.present || world.hasPrevious);
      for (const id of ids) world.forgotten.add(id);
      Object.assign(world, { row: '', hasPrevious: false });
      return ids;
    }),
}));
vi.mock('#lib/storage/kv', () => ({
  withKv: (command: (kv: object) => unknown) =>
    command({
      get: (key: string) => released(() => world.cached.get(key)),
      set: (key: string, id: string) => {
        writes.push(id);
        return released(() => {
          writes.splice(writes.indexOf(id), 1);
          world.cached.set(key, id);
        });
      },
      del: (...keys: readonly string[]) =>
        released(() => {
          for (const key of keys) world.cached.delete(key);
        }),
    }),
}));
vi.mock('#lib/env', async (original) => ({
  ...(await original<typeof import('#lib/env')>()),
  environment: () => ({ USER_ID_CACHE_TTL_SECONDS: 600 }),
}));

/** Error of an insert whose id is a previous id. */
class Conflict extends Error {}

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
    guard: () => guard(OLD_ID),
    'guard by the new id': () => guard(NEW_ID),
    register: () => registerByIdentityProviderUserId(OLD_ID),
    /** Waits until the user has a row. Then changes the user's id from the old to the new id, or back. */
    relink: () =>
      released(
        () =>
          Object.assign(world, { present: world.present === OLD_ID ? NEW_ID : OLD_ID, hasPrevious: true }),
        () => world.row !== '',
      ),
    forget: () => {
      // The real pause lasts until no lookup can still write the id of the deleted row.
      const pause = () =>
        released(
          () => undefined,
          () => writes.every((id) => id === world.row),
        );
      return forget(OLD_ID, 30, pause);
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
 * Outcome of a run: the number of created ids, the number of the id in the row, the numbers of the cached ids of the old and
 * the new id, and how many calls reported `created`. A number 0 means that there is no such id.
 */
type Outcome = readonly [ids: number, row: number, cached: number, newCached: number, created: number];

/** The user before the calls: without a row, with a row, with a row and a cached id, or moved to the new id. */
type UserBefore = 'new' | 'known' | 'cached' | 'moved';

/** A call and the process that runs it. */
type Operation = readonly [kind: keyof Process, process: number];

/**
 * Starts the calls and releases one waiting call of a fake after another. `choices` contains the index of each call to release.
 * Returns the number of calls that could have been released at each step, and the outcome.
 */
async function run(user: UserBefore, calls: readonly Operation[], choices: readonly number[]) {
  const id = user === 'new' ? '' : idOf(1);
  Object.assign(world, {
    row: id,
    present: user === 'moved' ? NEW_ID : OLD_ID,
    hasPrevious: user === 'moved',
    forgotten: new Set(),
    cached: new Map(user === 'cached' ? [[cacheKey(OLD_ID), id]] : []),
    ids: id === '' ? 0 : 1,
  });
  let isDone = false;
  const started = calls.map(([kind, process]) => processes[process]?.[kind]());
  const results = Promise.all(started).finally(() => {
    isDone = true;
  });
  const alternatives: number[] = [];
  for (;;) {
    // A batch of lookups starts in the event loop iteration after its first key.
    for (let count = 0; count < 3; count += 1) await iteration();
    if (isDone) break;
    const enabled = [...world.waiting].filter(({ isEnabled }) => isEnabled());
    const chosen = enabled[choices[alternatives.length] ?? 0];
    if (chosen === undefined) throw new Error('Some calls are not done, but none of them waits');
    alternatives.push(enabled.length);
    world.waiting.delete(chosen);
    chosen.run();
  }
  const created = (await results).filter((result) => Object(result).created === true).length;
  const numberOf = (id = '') => Number(id.slice(-1));
  const [cached, newCached] = [OLD_ID, NEW_ID].map((each) => numberOf(world.cached.get(cacheKey(each))));
  const outcome: Outcome = [world.ids, numberOf(world.row), cached ?? 0, newCached ?? 0, created];
  return { alternatives, outcome: outcome.join() };
}

/** Runs the calls once in each order of their statements and commands. */
async function runAll(user: UserBefore, calls: readonly Operation[]) {
  const outcomes = new Set<string>();
  let runs = 0;
  for (let choices: number[] | undefined = []; choices !== undefined; runs += 1) {
    const { alternatives, outcome } = await run(user, calls, choices);
    outcomes.add(outcome);
    const taken = alternatives.map((_, index) => choices?.[index] ?? 0);
    const last = taken.findLastIndex((choice, index) => choice + 1 < (alternatives[index] ?? 0));
    choices = last === -1 ? undefined : [...taken.slice(0, last), (taken[last] ?? 0) + 1];
  }
  return { runs, outcomes: [...outcomes].sort() };
}

/** Returns the outcomes of the model for the same calls. */
function outcomesOfModel(user: UserBefore, calls: readonly Operation[]): string[] {
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
    if (user === 'new') return each;
    const [old, other] = each.names;
    return {
      ...{ ...each, rows: [1], ids: 1, names: [{ ...old, cached: user === 'cached' ? 1 : 0 }, other] },
      ...(user === 'moved' ? { present: 1, previous: 'valid' } : {}),
    };
  });
  let first: State = { ...model.initial, users };
  for (const [kind, process] of calls) {
    // The model has no step between the start of a move and its transaction.
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
  return [...outcomes].sort();
}

test.each<[calls: string, UserBefore, ...Operation[]]>([
  ['guards of two processes', 'new', ['guard', 0], ['guard', 1]],
  ['guard and register of a process', 'new', ['guard', 0], ['register', 0]],
  ['guard and register of two processes', 'new', ['guard', 0], ['register', 0], ['register', 1]],
  ['guard and forget', 'known', ['guard', 0], ['forget', 1]],
  ['guard, register and forget', 'known', ['guard', 0], ['register', 0], ['forget', 1]],
  ['guard, register and forget', 'cached', ['guard', 0], ['register', 1], ['forget', 1]],
  ['guard, register and relink', 'known', ['guard', 0], ['register', 1], ['relink', 1]],
  ['guards by both ids and a rollback', 'moved', ['guard', 0], ['guard by the new id', 1], ['relink', 1]],
  ['guard by the old id and forget', 'moved', ['guard', 0], ['forget', 1]],
  ['guard by the new id and forget', 'moved', ['guard by the new id', 0], ['forget', 1]],
  ['register and relink', 'new', ['register', 0], ['register', 1], ['relink', 1]],
])(
  'The functions of lib/ and the model have the same outcomes for all orders of these calls: %s (user: %s)',
  async (_name, user, ...calls) => {
    const { runs, outcomes } = await runAll(user, calls);
    expect(outcomes).toEqual(outcomesOfModel(user, calls));
    expect(runs).toBeGreaterThan(1);
  },
);

import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test, vi } from 'vitest';
import type { Kind } from '#lib/core/ports';
import { cacheKey } from '../harness/dependencies/kv';
import { fakeStorage } from './fake-storage';

// Runs the real functions of lib/ with a fake database and a fake cache. Each database statement and each cache command waits
// until the test releases it, so that the test can run them in every order. After each order, the guarantees must hold.

/** A statement or command that waits until the test releases it. `call` is the call that waits. */
interface Waiting {
  readonly call: string | undefined;
  readonly name: string;
  readonly isEnabled: () => boolean;
  readonly run: () => void;
}
const waiting = new Set<Waiting>();
const currentCall = new AsyncLocalStorage<string>();

/** Runs `statement` when the test releases it. The test releases it only while `isEnabled()` returns true. */
const schedule = <T>(name: string, statement: () => T, isEnabled = () => true) =>
  new Promise<void>((resolve) =>
    waiting.add({ call: currentCall.getStore(), name, isEnabled, run: resolve }),
  ).then(statement);

const storage = fakeStorage(schedule);
/** Internal ids that calls are about to write to the cache. */
const writes: string[] = [];

vi.mock('#lib/ids/store', async (original) => ({
  ...(await original<typeof import('#lib/ids/store')>()),
  ...storage.links,
}));
vi.mock('#lib/operator/rows', async (original) => ({
  ...(await original<typeof import('#lib/operator/rows')>()),
  ...storage.rows,
}));
vi.mock('#lib/operator/delete-link', () => storage.deletion);
vi.mock('#lib/operator/pending-deletions', () => ({ finishDeletions: async () => undefined }));
vi.mock('#lib/storage/kv', () => ({
  withKv: (command: (kv: object) => unknown) =>
    command({
      ...storage.kv,
      get: async (key: string) => {
        const value = await storage.kv.get(key);
        // The response of the cache can arrive late. For users, this makes no difference.
        if (key.startsWith('auth:tenant-')) await schedule('cache response', () => undefined);
        return value;
      },
      set: async (key: string, id: string, options?: { readonly nx?: boolean }) => {
        writes.push(id);
        await storage.kv.set(key, id, options);
        writes.splice(writes.indexOf(id), 1);
      },
    }),
}));
vi.mock('#lib/base/env', async (original) => ({
  ...(await original<typeof import('#lib/base/env')>()),
  environment: () => ({ USER_ID_CACHE_TTL_SECONDS: 600 }),
}));

/**
 * The ids of the only user at the old and at the new instance of the provider. Two copies of the modules of lib/ serve all runs
 * as two processes. Both may keep state for an id, so each run uses new ids.
 */
let ids: readonly [oldId: string, newId: string] = ['user_old_0', 'user_new_0'];
const rowId = () => ids.map(storage.rowOf).find((id) => id !== undefined);

/** The result of a call: the internal id, and whether the call created it. */
type Result = Promise<{ readonly userId: string; readonly created: boolean } | undefined>;

/** True if organization.deleted has got its 200. */
let isDeleted = false;
const wasDeleted = () => isDeleted;

async function loadProcess() {
  vi.resetModules();
  const { resolve: resolveId } = (await import('#lib/link')).link;
  const { registerByIdentityProviderUserId } = await import('#lib/register');
  const { forget } = await import('#lib/operator/forget');
  const { uncache } = await import('#lib/ids/cache');
  // The first lookup loads the module of the cache.
  const first = resolveId('user', '', undefined);
  await vi.waitUntil(() => waiting.size > 0);
  storage.cached.set(cacheKey('', 'user'), randomUUID());
  for (const each of waiting) each.run();
  waiting.clear();
  await first;
  const guard = async (id: string, kind: Kind = 'user'): Result => {
    const resolved = await resolveId(kind, id, undefined);
    return resolved.state === 'linked'
      ? { userId: resolved.id, created: resolved.caller === 'created' }
      : undefined;
  };
  const forgetOnce = async (isPauseOver: () => boolean): Result => {
    await forget('user', ids[0], 30, { by: 'me' }, () => schedule('pause', () => undefined, isPauseOver));
    return undefined;
  };
  return {
    guard: () => guard(ids[0]),
    'guard by the new id': () => guard(ids[1]),
    async register(): Result {
      const { id: userId, created } = await registerByIdentityProviderUserId(ids[0]);
      return userId === undefined ? undefined : { userId, created };
    },
    /** The transaction that moves the user to the other id. It has no effect after the deletion of the row. */
    async relink(): Result {
      const target = () => (storage.canMove(...ids) ? ids : ([ids[1], ids[0]] as const));
      const move = () => storage.move(...target());
      await schedule('move', move, () => storage.canMove(...target()) || waiting.size === 1);
      return undefined;
    },
    remember: async (): Result => void (await storage.remember(ids[0])),
    'tenant guard': () => guard(ids[0], 'tenant'),
    /** The last step of a relink, or of its repetition, which finds nothing to move. */
    'tenant relink': async (): Result => void (await uncache('tenant', ids)),
    /** The handler of organization.deleted. */
    async 'deletion event'(): Result {
      await storage.scheduleDeletion(ids[0]);
      await uncache('tenant', [ids[0]]);
      isDeleted = true;
      return undefined;
    },
    /** A request that a client sends after the response to organization.deleted. */
    async 'later guard'(): Result {
      await schedule('arrive', () => undefined, wasDeleted);
      return guard(ids[0], 'tenant');
    },
    // The real pause is so long that no call can still cache the id of the deleted row afterwards. This pause lasts while a call
    // is about to cache an id that no row has.
    forget: () => forgetOnce(() => writes.every((id) => id === rowId())),
    'forget with a short pause': () => forgetOnce(() => true),
  };
}
type Process = Awaited<ReturnType<typeof loadProcess>>;
let processes: readonly Process[] = [];
beforeAll(async () => {
  processes = [await loadProcess(), await loadProcess()];
});

/**
 * The user or tenant before the calls: without a row, with a row, with a row and a cached id, with a row and an invalid value in
 * the cache, moved to the new id, or forgotten.
 */
type UserBefore = 'new' | 'known' | 'cached' | 'invalid' | 'moved' | 'forgotten';
type Operation = readonly [kind: keyof Process, process: number];
/** `interruptions` limits how often another call continues although the call of the previous step could continue. */
type Case = [before: UserBefore, interruptions: number | undefined, ...Operation[]];

/** Returns the guarantees that the results of the calls and the state after them break. No call has a newer session token. */
function brokenGuarantees([before, , ...calls]: Case, results: readonly Awaited<Result>[]): string[] {
  const row = rowId();
  const cached = ids.flatMap((id) => storage.cached.get(cacheKey(id)) ?? []);
  const isForgotten = calls.some(([kind]) => kind.startsWith('forget'));
  const isRemembered = calls.some(([kind]) => kind === 'remember');
  const isGone = isForgotten || isRemembered || calls.some(([kind]) => kind === 'deletion event');
  const returned = results.filter(
    (_, index) => !/forget|relink|remember|event|later/.test(calls[index]?.[0] ?? ''),
  );
  const later = results.filter((_, index) => calls[index]?.[0].startsWith('later'));
  const created = returned.filter((result) => result?.created).length;
  const creators = before === 'new' || isRemembered ? 1 : 0;
  const broken = {
    'a user has one internal id': storage.insertedRows() > 1,
    'one call reports that it created the user': isGone ? created > creators : created !== creators,
    'a cached id has a row': cached.some((id) => id !== row),
    'a forgotten user has no row': isForgotten && row !== undefined,
    'a request after organization.deleted gets no tenant': later.some((result) => result !== undefined),
    'each call returns the internal id': !isGone && returned.some((result) => result?.userId !== row),
  };
  return Object.entries(broken).flatMap(([guarantee, isBroken]) => (isBroken ? [guarantee] : []));
}

function reset(before: UserBefore): void {
  storage.reset();
  isDeleted = false;
  const run = Number(ids[0].split('_').at(-1)) + 1;
  ids = [`user_old_${run}`, `user_new_${run}`];
  if (before === 'new') return;
  if (before === 'forgotten') return void storage.remove(ids[0]);
  const [id = ''] = storage.insert(ids[0]);
  if (before === 'cached')
    for (const kind of ['user', 'tenant'] as const) storage.cached.set(cacheKey(ids[0], kind), id);
  if (before === 'invalid') storage.cached.set(cacheKey(ids[0], 'tenant'), 'invalid');
  if (before === 'moved') storage.move(...ids);
}

/**
 * Starts the calls and releases one statement or command at each step. `choices` selects one of those that can be released at
 * each step. The default is the first. Returns how many could be released at each step, the names of the released ones, and the
 * broken guarantees.
 */
async function run(given: Case, choices: readonly number[]) {
  const [before, interruptions, ...calls] = given;
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
    // After a few iterations of the event loop, each call is done, or waits for the test or for another call.
    for (let count = 0; count < 3; count += 1) await new Promise((resolve) => setImmediate(resolve));
    if (isDone) break;
    const enabled = [...waiting].filter(({ isEnabled }) => isEnabled());
    const same = enabled.filter(({ call }) => call === latest);
    const allowed = interrupted === interruptions && same.length > 0 ? same : enabled;
    const chosen = allowed[choices[alternatives.length] ?? 0];
    if (chosen === undefined) throw new Error(`No call can continue after: ${trace.join(', ')}`);
    alternatives.push(allowed.length);
    trace.push(`${chosen.call}: ${chosen.name}`);
    if (same.length > 0 && chosen.call !== latest) interrupted += 1;
    latest = chosen.call;
    waiting.delete(chosen);
    chosen.run();
  }
  return { alternatives, trace, broken: brokenGuarantees(given, await results) };
}

/** Runs the calls once in each order of their statements and commands. Returns the orders that break a guarantee. */
async function runAll(calls: Case) {
  const violations: Pick<Awaited<ReturnType<typeof run>>, 'trace' | 'broken'>[] = [];
  for (let choices: number[] | undefined = []; choices !== undefined; ) {
    const { alternatives, trace, broken } = await run(calls, choices);
    if (broken.length > 0) violations.push({ broken, trace });
    const taken = alternatives.map((_, index) => choices?.[index] ?? 0);
    const last = taken.findLastIndex((choice, index) => choice + 1 < (alternatives[index] ?? 0));
    choices = last === -1 ? undefined : [...taken.slice(0, last), (taken[last] ?? 0) + 1];
  }
  return violations;
}

test.each<Case>([
  ['new', undefined, ['guard', 0], ['guard', 1]],
  ['new', undefined, ['guard', 0], ['guard', 0], ['register', 1]],
  ['new', undefined, ['guard', 0], ['register', 0], ['register', 1]],
  ['new', 1, ['guard', 0], ['register', 0], ['register', 1], ['forget', 1]],
  ['known', 3, ['guard', 0], ['register', 0], ['forget', 1]],
  ['cached', 3, ['guard', 0], ['register', 1], ['forget', 1]],
  ['known', undefined, ['guard', 0], ['register', 1], ['relink', 1]],
  ['new', undefined, ['register', 0], ['register', 1], ['relink', 1]],
  ['moved', undefined, ['guard', 0], ['guard by the new id', 1], ['relink', 1]],
  ['moved', 2, ['guard', 0], ['guard by the new id', 1], ['forget', 1]],
  ['forgotten', undefined, ['guard', 0], ['register', 1], ['remember', 1]],
  ['known', undefined, ['tenant guard', 0], ['deletion event', 1], ['later guard', 0]],
  ['cached', undefined, ['tenant guard', 0], ['deletion event', 1], ['later guard', 0]],
  ['invalid', 2, ['tenant guard', 0], ['deletion event', 1], ['later guard', 1]],
  ['known', 2, ['tenant guard', 0], ['tenant relink', 1], ['deletion event', 1], ['later guard', 0]],
])(
  'The guarantees hold after each order of the statements of concurrent calls (user: %s, interruptions: %s, calls: %j, %j, %j)',
  async (...calls) => {
    expect((await runAll(calls)).slice(0, 1)).toEqual([]);
  },
);

test('The checks find the order in which a lookup caches the id of a forgotten user', async () => {
  const [violation] = await runAll(['known', undefined, ['guard', 0], ['forget with a short pause', 1]]);
  expect(violation?.broken).toEqual(['a cached id has a row']);
});

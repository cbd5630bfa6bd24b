import { type Call, call, checkHistory, ENTRY_POINTS, readRows } from './history';
import { inParallel } from './parallel';
import { deliver, me, now, register, tokenFor, userCreated } from './requests';
import type { TestService } from './service';

/** Result of `generateLoad`. */
export interface LoadFigures {
  readonly requests: number;
  readonly seconds: number;
  readonly rows: number;
  /** Number of calls of the register route that got a 201. */
  readonly created: number;
  /**
   * Number of INSERT statements minus the number of users. Each additional statement belongs to a call that lost the race
   * to create the row.
   */
  readonly lostRaces: number;
  readonly errors: readonly string[];
  /** A sentence for each user whose calls are not linearizable (`checkHistory`). */
  readonly violations: readonly string[];
}

export interface LoadOptions {
  readonly users: number;
  /** Maximum number of requests in flight. */
  readonly concurrency: number;
  /** The same seed gives the same order of requests. */
  readonly seed: number;
}

/** Returns a seeded generator of numbers in [0, 1) (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * The requests are sorted by the index of their user plus a random number below this limit. The limit is small, so that the
 * requests of one user are close together and in flight at the same time.
 */
const SPREAD = 3;

/**
 * Registers every user in three ways at about the same time:
 * - with a guarded route. Its guard checks the session token and registers the user of the token.
 * - with the register route.
 * - with the webhook.
 *
 * The order is random, some requests are sent twice, and each request goes to a random process. Checks the history of all
 * calls afterwards.
 */
export async function generateLoad(
  service: TestService,
  { users, concurrency, seed }: LoadOptions,
): Promise<LoadFigures> {
  const random = randomFrom(seed);
  const id = (user: number) => `user_arrival_${seed}_${user}`;
  const requests = Array.from({ length: users }, (_, user) =>
    [...ENTRY_POINTS, ...ENTRY_POINTS.filter(() => random() < 0.3)].map((entryPoint) => ({
      user,
      entryPoint,
      position: user + random() * SPREAD,
      process: Math.floor(random() * service.processes.length),
    })),
  )
    .flat()
    .sort((one, other) => one.position - other.position);

  const tokens = new Map<number, string>();
  const tokenOf = (user: number) => {
    const token = tokens.get(user) ?? tokenFor(service.idp, id(user));
    tokens.set(user, token);
    return token;
  };
  const calls: Call[] = [];
  const errors: string[] = [];
  let inserts = 0;
  const countInserts = () => {
    inserts += service.database.takeStatements().filter((sql) => sql.startsWith('INSERT')).length;
  };

  // The register route also has a guard. With a token of the user to register, the guard would register the user before the
  // handler does. The token therefore belongs to another user. The loop below registers that other user before the measurement.
  // It sends a request to each process, so that each process has cached the token.
  const caller = tokenFor(service.idp, `user_caller_${seed}`, { exp: now() + 3600 });
  for (const { url } of service.processes) await me(url, caller);
  countInserts();
  inserts = 0;
  const before = await readRows(service);
  const started = performance.now();
  await inParallel(concurrency, requests, async ({ user, entryPoint, process }, index) => {
    const url = service.processes[process]?.url ?? service.url;
    const send = {
      guard: () => me(url, tokenOf(user)),
      register: () => register(url, caller, { identityProviderUserId: id(user) }),
      webhook: () => deliver(url, userCreated(id(user))),
    }[entryPoint];
    const { call: made } = await call(id(user), entryPoint, send);
    calls.push(made);
    if (made.status !== 200 && !(made.status === 201 && entryPoint === 'register'))
      errors.push(`${entryPoint} ${made.status}`);
    if (index % 500 === 0) countInserts();
  });
  const seconds = (performance.now() - started) / 1000;
  countInserts();

  const rows = await readRows(service);
  return {
    requests: requests.length,
    seconds,
    rows: Array.from({ length: users }, (_, user) => rows.get(id(user)) ?? []).flat().length,
    created: calls.filter(({ status }) => status === 201).length,
    lostRaces: inserts - users,
    errors,
    violations: checkHistory(calls, rows, before),
  };
}

import { z } from 'zod';
import { inParallel } from './parallel';
import { deliver, me, now, register, tokenFor, userCreated } from './requests';
import type { TestService } from './service';

/** Result of a run. */
export interface LoadFigures {
  readonly requests: number;
  readonly seconds: number;
  readonly rows: number;
  readonly usersWithoutOneRow: number;
  readonly usersWithSeveralIds: number;
  readonly usersCreatedTwice: number;
  readonly created: number;
  /**
   * Number of inserts minus the number of users. Each additional insert belongs to a call that lost the race to create
   * the row.
   */
  readonly lostRaces: number;
  readonly errors: readonly string[];
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

const ENTRY_POINTS = ['guard', 'register', 'webhook'] as const;
const Linked = z.object({ userId: z.string() });
/**
 * Maximum shift of a request in the random order, in users. A small shift keeps the requests of one user in flight
 * together.
 */
const SPREAD = 3;

/**
 * Registers every user through guard, register and webhook at about the same time. The order is random, some requests are
 * sent twice, and each request goes to a random process. Compares all responses with the rows afterwards.
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
  const userIds = Array.from({ length: users }, () => new Set<string>());
  const created = Array.from({ length: users }, () => 0);
  const errors: string[] = [];
  let inserts = 0;
  const countInserts = () => {
    inserts += service.database.takeStatements().filter((sql) => sql.startsWith('INSERT')).length;
  };

  // Another user calls register. Otherwise, the guard would register the user before the handler of register runs.
  const caller = tokenFor(service.idp, `user_caller_${seed}`, { exp: now() + 3600 });
  for (const { url } of service.processes) await me(url, caller);
  countInserts();
  inserts = 0;
  const started = performance.now();
  await inParallel(concurrency, requests, async ({ user, entryPoint, process }, index) => {
    const url = service.processes[process]?.url ?? service.url;
    const { status, body } = await {
      guard: () => me(url, tokenOf(user)),
      register: () => register(url, caller, { identityProviderUserId: id(user) }),
      webhook: () => deliver(url, userCreated(id(user))),
    }[entryPoint]();
    if (status !== 200 && !(status === 201 && entryPoint === 'register'))
      errors.push(`${entryPoint} ${status}`);
    if (status === 201) created[user] = (created[user] ?? 0) + 1;
    if (entryPoint !== 'webhook' && status < 300) userIds[user]?.add(Linked.parse(body).userId);
    if (index % 500 === 0) countInserts();
  });
  const seconds = (performance.now() - started) / 1000;
  countInserts();

  const { rows } = await service.database.pool.query<{ id: string; idp: string }>(
    `SELECT id, identity_provider_user_id AS idp FROM users WHERE starts_with(identity_provider_user_id, $1)`,
    [`user_arrival_${seed}_`],
  );
  const rowsOf = new Map<string, string[]>();
  for (const { id, idp } of rows) rowsOf.set(idp, [...(rowsOf.get(idp) ?? []), id]);
  return {
    requests: requests.length,
    seconds,
    rows: rows.length,
    usersWithoutOneRow: userIds.filter((_, user) => rowsOf.get(id(user))?.length !== 1).length,
    usersWithSeveralIds: userIds.filter((ids, user) => {
      const row = rowsOf.get(id(user))?.[0];
      return ids.size !== 1 || row === undefined || !ids.has(row);
    }).length,
    usersCreatedTwice: created.filter((count) => count > 1).length,
    created: created.reduce((sum, count) => sum + count, 0),
    lostRaces: inserts - users,
    errors,
  };
}

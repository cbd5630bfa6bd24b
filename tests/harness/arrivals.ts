import { z } from 'zod';
import { inParallel } from './parallel';
import { deliver, me, now, register, tokenFor, userCreated } from './requests';
import type { TestService } from './service';

/** What came of it. */
export interface ArrivalFigures {
  readonly requests: number;
  readonly seconds: number;
  readonly rows: number;
  readonly usersWithoutOneRow: number;
  readonly usersWithSeveralIds: number;
  readonly usersCreatedTwice: number;
  readonly created: number;
  /** Inserts beyond one a user: calls that lost a race to create. */
  readonly lostRaces: number;
  readonly errors: readonly string[];
}

export interface ArrivalOptions {
  readonly users: number;
  /** Requests under way at any time. */
  readonly concurrency: number;
  /** Repeats an order. */
  readonly seed: number;
}

/** A small, repeatable source of numbers in [0, 1) (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const WAYS = ['guard', 'register', 'webhook'] as const;
const Linked = z.object({ userId: z.string() });
/** How far an arrival strays from its user's turn, in users: the arrivals of one user are under way together. */
const SCATTER = 3;

/**
 * Has every user arrive by guard, by register and by webhook at about the same time, in random order, some ways
 * twice, each request at a random process; then compares all answers with the rows.
 */
export async function arrive(
  service: TestService,
  { users, concurrency, seed }: ArrivalOptions,
): Promise<ArrivalFigures> {
  const random = randomFrom(seed);
  const id = (user: number) => `user_arrival_${seed}_${user}`;
  const arrivals = Array.from({ length: users }, (_, user) =>
    [...WAYS, ...WAYS.filter(() => random() < 0.3)].map((way) => ({
      user,
      way,
      turn: user + random() * SCATTER,
      process: Math.floor(random() * service.processes.length),
    })),
  )
    .flat()
    .sort((one, other) => one.turn - other.turn);

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

  // Not the caller's own id: its guard would link it before the handler could.
  const caller = tokenFor(service.idp, `user_caller_${seed}`, { exp: now() + 3600 });
  for (const { url } of service.processes) await me(url, caller);
  countInserts();
  inserts = 0;
  const started = performance.now();
  await inParallel(concurrency, arrivals, async ({ user, way, process }, index) => {
    const url = service.processes[process]?.url ?? service.url;
    const { status, body } = await {
      guard: () => me(url, tokenOf(user)),
      register: () => register(url, caller, { identityProviderUserId: id(user) }),
      webhook: () => deliver(url, userCreated(id(user))),
    }[way]();
    if (status !== 200 && !(status === 201 && way === 'register')) errors.push(`${way} ${status}`);
    if (status === 201) created[user] = (created[user] ?? 0) + 1;
    if (way !== 'webhook' && status < 300) userIds[user]?.add(Linked.parse(body).userId);
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
    requests: arrivals.length,
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

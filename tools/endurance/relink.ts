import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Emulator } from 'clerk-emulator';
import { withServiceOver } from '../../bench/with-service';
import { type Command, startCommand } from '../../tests/harness/commands';
import { startReplicatedPostgres } from '../../tests/harness/dependencies/replicated-postgres';
import {
  type Call,
  call,
  checkHistory,
  describeHistory,
  ENTRY_POINTS,
  type Rows,
} from '../../tests/harness/history';
import { startProvider } from '../../tests/harness/identity-provider';
import { inParallel } from '../../tests/harness/parallel';
import { residentMegabytes } from '../../tests/harness/proc';
import { deliver, me, now, register, tokenFor, userCreated } from '../../tests/harness/requests';
import {
  LIVE_KEYS,
  providerVariables,
  type ServiceProcess,
  startServiceProcess,
} from '../../tests/harness/service';

/**
 * `npm run relink-rehearsal`: runs the command `users:relink`, which moves users from one instance of the identity provider to
 * another. Both instances are emulators. Meanwhile, one deployment per instance gets requests. Both deployments use the same
 * database and cache. The rehearsal also kills the command and a deployment, and lets the database fail over. Exits with 1 in
 * these cases:
 * - The command fails, or ends before the kills and the failover.
 * - A user gets another internal id.
 * - A request fails outside the outages.
 * - The rows and the responses of a user contradict each other.
 */
const { values } = parseArgs({ options: { users: { type: 'string', default: '20000' } } });
const USERS = Number(values.users);
/** Number of users that lib/users/relink.ts moves in one transaction. */
const BATCH = 200;
const CONCURRENCY = 8;
const CALM_MS = 2_000;
const OUTAGE_MS = 3_000;
/** Time after a failover in which requests may still fail. A query to the old primary may wait until its timeout of 3 s. */
const RECOVERY_MS = 3_000;

interface Deployment {
  readonly idp: Emulator;
  readonly idOf: (user: number) => string;
  url: string;
}

const nameOf = (user: number) => `user ${user}`;
const isFailed = ({ status }: Call) => status !== 200;

await withServiceOver(startReplicatedPostgres, { keys: 'test' }, async (service, postgres) => {
  const { database, kv, environment } = service;
  const folder = await mkdtemp(path.join(os.tmpdir(), 'identity-link-relink-'));
  const newIdp = await startProvider(LIVE_KEYS);
  const started: ServiceProcess[] = [];
  const start = async (variables: Readonly<Record<string, string>>, port?: number) => {
    const process = await startServiceProcess(variables, '.', port);
    started.push(process);
    return process;
  };
  try {
    const { url } = await start({ ...environment, ...providerVariables(LIVE_KEYS, newIdp) });
    const before: Deployment = { idp: service.idp, idOf: (user) => `user_old_${user}`, url: service.url };
    const after: Deployment = { idp: newIdp, idOf: (user) => `user_new_${user}`, url };

    /** Returns the internal ids of the rows of each user. */
    const selectUsers = async (): Promise<Rows> => {
      const { rows } = await database.pool.query<{ id: string; name: string }>(
        `SELECT id, regexp_replace(identity_provider_user_id, '^user_(old|new)_', 'user ') AS name FROM users`,
      );
      const ids = new Map<string, string[]>();
      for (const { id, name } of rows) ids.set(name, [...(ids.get(name) ?? []), id]);
      return ids;
    };
    await database.pool.query(
      `INSERT INTO users SELECT gen_random_uuid(), 'user_old_' || i FROM generate_series(0, $1 - 1) AS i`,
      [USERS],
    );
    const linked = await selectUsers();
    const map = path.join(folder, 'map.csv');
    const users = Array.from({ length: USERS }, (_, user) => user);
    await writeFile(map, users.map((user) => `${before.idOf(user)},${after.idOf(user)}\n`).join(''));

    const calls: Call[] = [];
    const tokens = new Map<string, string>();
    const request = async (deployment: Deployment, user: number, entryPoint: Call['entryPoint']) => {
      const id = deployment.idOf(user);
      const token = tokens.get(id) ?? tokenFor(deployment.idp, id, { exp: now() + 24 * 3600 });
      tokens.set(id, token);
      const send = {
        guard: () => me(deployment.url, token),
        register: () => register(deployment.url, token, { identityProviderUserId: id }),
        webhook: () => deliver(deployment.url, userCreated(id)),
      }[entryPoint];
      calls.push((await call(nameOf(user), entryPoint, send)).call);
    };

    // Sends requests to both deployments. The new deployment gets requests only of users that have moved. Users move in the order
    // of their numbers, so the users with a number below `moved` have moved.
    let moved = 0;
    let isEnding = false;
    const random = (below: number) => Math.floor(Math.random() * below);
    const traffic = inParallel(CONCURRENCY, Array.from({ length: CONCURRENCY }), async () => {
      while (!isEnding) {
        const isNew = moved > 0 && random(2) === 0;
        const deployment = isNew ? after : before;
        const user = random(isNew ? moved : USERS);
        if (random(3) === 0) await kv.engine.call('DEL', `auth:user-id-by-idp:${deployment.idOf(user)}`);
        await request(deployment, user, ENTRY_POINTS[random(ENTRY_POINTS.length)] ?? 'guard');
      }
    });
    const counting = (async () => {
      while (!isEnding) {
        const count = database.pool.query<{ count: number }>('SELECT count(*)::int FROM previous_ids');
        moved = await count.then(({ rows }) => rows[0]?.count ?? 0).catch(() => moved);
        await pause(50);
      }
    })();

    /** Periods in which a request may fail because of an outage, and the status of such a failure. */
    const outages: { readonly status: number | undefined; readonly from: number; to: number }[] = [];
    const outage = async (status: number | undefined, recoveryMs: number, work: () => Promise<void>) => {
      const window = { status, from: performance.now(), to: Number.POSITIVE_INFINITY };
      outages.push(window);
      await work();
      window.to = performance.now() + recoveryMs;
    };
    let command: Command | undefined;
    let kills = 0;
    const killCommand = async () => {
      kills += 1;
      command?.child.kill('SIGKILL');
    };
    const [old] = service.processes;
    if (!old) throw new Error('The old deployment is not running');
    const killDeployment = () =>
      outage(undefined, 0, async () => {
        kills += 1;
        process.kill(old.pid, 'SIGKILL');
        await old.exited;
        before.url = (await start(environment, Number(new URL(old.url).port))).url;
      });
    const failOver = () =>
      outage(500, RECOVERY_MS, async () => {
        await postgres.killPrimary();
        await pause(OUTAGE_MS);
        await postgres.promoteStandby();
      });
    /** Each event happens when the command has sent the fraction `share` of its statements. */
    const events = [
      { share: 0.2, run: killCommand },
      { share: 0.4, run: killDeployment },
      { share: 0.6, run: failOver },
      { share: 0.8, run: killCommand },
    ];
    const running: Promise<void>[] = [];
    const listening = database.proxy.onClientData;
    let statements = 0;
    database.proxy.onClientData = (chunk) => {
      listening?.(chunk);
      if (!chunk.includes('WITH moved')) return;
      statements += 1;
      const [next] = events;
      if (next === undefined || statements < next.share * (USERS / BATCH)) return;
      events.shift();
      running.push(next.run());
    };

    await pause(CALM_MS);
    const startedAt = performance.now();
    let result: Awaited<Command['ended']>;
    do {
      command = startCommand('users/relink', ['--map', map], environment);
      result = await command.ended;
    } while (result.exit === 'SIGKILL');
    const seconds = (performance.now() - startedAt) / 1000;
    await Promise.all(running);
    await pause(CALM_MS);
    isEnding = true;
    await Promise.all([traffic, counting]);
    const duringMove = calls.length;
    // Requests the id of each user from both deployments.
    await inParallel(CONCURRENCY, users, async (user) => {
      for (const deployment of [before, after]) await request(deployment, user, 'guard');
    });

    const rows = await selectUsers();
    const changed = users.filter(
      (user) => rows.get(nameOf(user))?.join() !== linked.get(nameOf(user))?.join(),
    );
    const wrong = calls.filter(
      ({ identityProviderUserId: name, userId }) => userId !== undefined && userId !== linked.get(name)?.[0],
    );
    const failures = calls.filter(isFailed);
    const unexplained = failures.filter(
      (each) =>
        !outages.some(
          ({ status, from, to }) => each.status === status && each.endedAt >= from && each.sentAt <= to,
        ),
    );
    const reasons: Record<string, number> = {};
    for (const { status } of failures) {
      const reason =
        status === undefined ? 'failures: no response of the killed deployment' : `failures: ${status}`;
      reasons[reason] = (reasons[reason] ?? 0) + 1;
    }
    const violations = checkHistory(calls, rows, linked);
    console.log(result.stdout.trim());
    console.table({
      users: USERS,
      'requests during the move': duringMove,
      'requests after the move': calls.length - duringMove,
      'killed processes': kills,
      'database failovers': events.length === 0 ? 1 : 0,
      ...reasons,
      'failures outside the outages': unexplained.length,
      'ids changed': changed.length + wrong.length,
      'seconds of the move': Math.round(seconds),
      'megabytes of the deployments': started.map(({ pid }) => Math.round(residentMegabytes(pid))).join(', '),
    });
    console.log(describeHistory(calls.length, violations));
    const isFailure =
      result.exit !== 0 ||
      events.length + unexplained.length + changed.length + wrong.length + violations.length > 0;
    if (!isFailure) return;
    console.error(`Failed. ${result.stderr}`);
    process.exitCode = 1;
  } finally {
    await newIdp.stop();
    for (const process of started) await process.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { limitedHeap, percentile } from '../../bench/process-figures';
import { startCommand } from '../../tests/harness/commands';
import { createTestDatabase } from '../../tests/harness/dependencies/database';
import { startDedicatedPostgres } from '../../tests/harness/dependencies/dedicated-postgres';
import { startStubServer } from '../../tests/harness/dependencies/stub-server';
import { startProvider } from '../../tests/harness/identity-provider';
import { SECRET_KEY } from '../../tests/harness/keys';
import { residentMegabytes } from '../../tests/harness/proc';

/**
 * `npm run bench:backfill`: creates users in the Clerk emulator (`--users`, default 100,000) and links them with the command
 * `users:backfill`. A linked user has a row in the table `users`. Two thirds of the users share their creation time with other
 * users. During the run, the Backend API fails with 429s, 500s and connection resets, new users sign up, and existing users are
 * deleted. This tool kills the command when half of the users are linked, and then runs the command again. With `-- --calm`,
 * the tool measures the rate of a single run without failures, sign-ups or deletions. The tool exits with 1 in these cases:
 * - The last run of the command fails.
 * - A user that existed from the start and was not deleted is not linked, or any user is linked twice.
 * - The last run takes more than a minute, and its memory grows by more than a quarter.
 */
const { values } = parseArgs({
  options: { users: { type: 'string', default: '100000' }, calm: { type: 'boolean', default: false } },
});
const count = Number(values.users);
const MAX_GROWTH = 1.25;
const LONG_AGO = Date.parse('2026-01-01');

const postgres = await startDedicatedPostgres();
const database = await createTestDatabase(postgres);
const provider = await startProvider();
const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-backfill-'));

const template = provider.createUser({ email: 'template@private.example' });
provider.deleteUser(template.id);
const ids = Array.from({ length: count }, (_, index) => {
  const createdAt = LONG_AGO + (index % 3 === 0 ? index : Math.floor(index / 900) * 900) * 100;
  const id = `user_${String(index).padStart(8, '0')}`;
  provider.store.users.put({ ...template, id, email: `${id}@private.example`, createdAt });
  return id;
});
const deleted = new Set<string>();
const signedUp: string[] = [];
const failures = { '429': 0, '500': 0, reset: 0 };
let calls = 0;

async function forward({ url, headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const { authorization = '' } = headers;
  const upstream = await fetch(`${provider.url}${url}`, { headers: { authorization } });
  response.writeHead(upstream.status, Object.fromEntries(upstream.headers)).end(await upstream.text());
}
/** Server between the command and the emulator. Without `--calm`, some requests to this server fail. */
const front = await startStubServer(async (request, response) => {
  calls += 1;
  if (values.calm) return forward(request, response);
  if (calls % 13 === 0) {
    failures['500'] += 1;
    return void response.writeHead(500).end();
  }
  if (calls % 17 === 0) {
    failures.reset += 1;
    return void request.socket.resetAndDestroy();
  }
  if (calls % 19 === 0) {
    failures['429'] += 1;
    provider.failures.add({ operation: 'GET /v1/users', status: 429 });
  }
  await forward(request, response);
  signedUp.push(provider.createUser({ email: `${calls}@joiner.example` }).id);
  const leaver = ids[Math.floor(Math.random() * ids.length)] ?? '';
  if (provider.store.users.get(leaver) && !deleted.has(leaver)) {
    provider.deleteUser(leaver);
    deleted.add(leaver);
  }
});

const environment = {
  ...limitedHeap,
  IDP_SECRET_KEY: SECRET_KEY,
  DATABASE_URL: database.url,
  CLERK_API_URL: front.url,
};
const memory: number[] = [];
/** Adds a memory sample. Ignores 0, which is the value of a process that is exiting. */
const addSample = (megabytes: number) => void (megabytes > 0 && memory.push(megabytes));

/** Runs the command `users:backfill`. Kills the command when the table `users` has at least `killAt` rows. */
async function run(name: string, args: readonly string[], killAt = Number.POSITIVE_INFINITY) {
  const startedAt = performance.now();
  const { child, ended } = startCommand(name, args, environment);
  child.stderr?.pipe(process.stderr);
  const sampling = setInterval(async () => {
    database.takeStatements();
    if (child.pid !== undefined && child.exitCode === null) addSample(residentMegabytes(child.pid));
    if (killAt === Number.POSITIVE_INFINITY) return;
    const { rows } = await database.pool.query<{ count: number }>('SELECT count(*)::int AS count FROM users');
    if ((rows[0]?.count ?? 0) >= killAt) child.kill('SIGKILL');
  }, 250);
  const { exit, stdout } = await ended;
  clearInterval(sampling);
  return { exit, stdout: stdout.trim(), seconds: (performance.now() - startedAt) / 1000 };
}

const state = ['--state', path.join(folder, 'state.json')];
const killed = values.calm ? undefined : await run('users/backfill', state, count / 2);
memory.length = 0;
const before = await database.users();
const finished = await run('users/backfill', state);
const linked = await database.users();
const distinct = new Set(linked);
const missed = ids.filter((id) => !deleted.has(id) && !distinct.has(id));
const duplicates = linked.length - distinct.size;
const quarter = Math.ceil(memory.length / 4);
const [first, last] = [memory.slice(0, quarter), memory.slice(-quarter)].map((part) => percentile(part, 0.5));
const grew = (last ?? 0) > MAX_GROWTH * (first ?? 0) && finished.seconds > 60;
console.table({
  users: count,
  failures: values.calm ? 'none: --calm' : 'on about 18% of the requests',
  'sign-ups during the run': signedUp.length,
  'deletions during the run': deleted.size,
  'responses with 429': failures['429'],
  'responses with 500': failures['500'],
  'connection resets': failures.reset,
  'rows when killed': killed ? before.length : 'not killed',
  'output of the last run': finished.stdout,
  'exit codes': [killed?.exit, finished.exit].join(', '),
  'seconds of the last run': Math.round(finished.seconds),
  'users per second in the last run': Math.round((linked.length - before.length) / finished.seconds),
  missed: missed.length,
  duplicates,
  'median megabytes in the first quarter of the last run': Math.round(first ?? 0),
  'median megabytes in the last quarter of the last run': Math.round(last ?? 0),
  'maximum megabytes in the last run': Math.round(Math.max(...memory)),
});
if (missed.length + duplicates > 0 || finished.exit !== 0 || grew) process.exitCode = 1;
await front.stop();
await provider.stop();
await database.drop();
await postgres.stop();
rmSync(folder, { recursive: true, force: true });

import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startCommand } from '../tests/harness/commands';
import { startProvider } from '../tests/harness/identity-provider';
import { createTestDatabase } from '../tests/harness/parts/database';
import { startImpostor } from '../tests/harness/parts/impostor';
import { startOwnPostgres } from '../tests/harness/parts/own-postgres';
import { residentMegabytes } from '../tests/harness/proc';
import { SECRET_KEY } from '../tests/harness/service';
import { boundedHeap, percentile } from './process-figures';

/**
 * `npm run bench:backfill`: as many users as told at the stand-in, a third of them imported in the same milliseconds, are
 * backfilled while the provider answers with 429s, 500s and resets, and others sign up and are deleted. Half-way the command is
 * killed, and run again. `-- --calm` leaves all of that away, and tells the rate. Ends with 1 unless everybody who was there all the time is linked once, and if memory grew.
 */
const { values } = parseArgs({
  options: { users: { type: 'string', default: '100000' }, calm: { type: 'boolean', default: false } },
});
const count = Number(values.users);
const MAX_GROWTH = 1.25;
const LONG_AGO = Date.parse('2026-01-01');

const postgres = await startOwnPostgres();
const database = await createTestDatabase(postgres);
const provider = await startProvider();
const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-bench-backfill-'));

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
const faults = { '429': 0, '500': 0, reset: 0 };
let calls = 0;

async function forward({ url, headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const { authorization = '' } = headers;
  const answer = await fetch(`${provider.url}${url}`, { headers: { authorization } });
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
}
const front = await startImpostor(async (request, response) => {
  calls += 1;
  if (values.calm) return forward(request, response);
  if (calls % 13 === 0) {
    faults['500'] += 1;
    return void response.writeHead(500).end();
  }
  if (calls % 17 === 0) {
    faults.reset += 1;
    return void request.socket.resetAndDestroy();
  }
  const limited = calls % 19 === 0;
  if (limited) faults['429'] += 1;
  provider.limitRate(limited ? { requests: 0, seconds: 1 } : undefined);
  await forward(request, response);
  signedUp.push(provider.createUser({ email: `${calls}@joiner.example` }).id);
  const leaver = ids[Math.floor(Math.random() * ids.length)] ?? '';
  if (provider.store.users.get(leaver) && !deleted.has(leaver)) {
    provider.deleteUser(leaver);
    deleted.add(leaver);
  }
});

const environment = {
  ...boundedHeap,
  IDP_SECRET_KEY: SECRET_KEY,
  DATABASE_URL: database.url,
  CLERK_API_URL: front.url,
};
const memory: number[] = [];
/** Of a process that is about to end there is none. */
const keep = (megabytes: number) => void (megabytes > 0 && memory.push(megabytes));

/** Runs the command, and kills it once so many rows are there. */
async function run(name: string, args: readonly string[], killAt = Number.POSITIVE_INFINITY) {
  const begun = performance.now();
  const { child, ended } = startCommand(name, args, environment);
  child.stderr?.pipe(process.stderr);
  const sampling = setInterval(async () => {
    database.takeStatements();
    if (child.pid !== undefined && child.exitCode === null) keep(residentMegabytes(child.pid));
    if (killAt === Number.POSITIVE_INFINITY) return;
    const { rows } = await database.pool.query<{ count: number }>('SELECT count(*)::int AS count FROM users');
    if ((rows[0]?.count ?? 0) >= killAt) child.kill('SIGKILL');
  }, 250);
  const { exit, stdout } = await ended;
  clearInterval(sampling);
  return { exit, stdout: stdout.trim(), seconds: (performance.now() - begun) / 1000 };
}

const state = ['--state', path.join(folder, 'state.json')];
const killed = values.calm ? undefined : await run('users/backfill', state, count / 2);
memory.length = 0;
const before = await database.users();
const finished = await run('users/backfill', state);
const linked = await database.users();
const there = new Set(linked);
const missed = ids.filter((id) => !deleted.has(id) && !there.has(id));
const twice = linked.length - there.size;
const quarter = Math.ceil(memory.length / 4);
const [first, last] = [memory.slice(0, quarter), memory.slice(-quarter)].map((part) => percentile(part, 0.5));
const grew = (last ?? 0) > MAX_GROWTH * (first ?? 0) && finished.seconds > 60;
console.table({
  users: count,
  faults: values.calm ? 'none: --calm' : 'on every fifth or sixth request',
  'signed up, deleted meanwhile': `${signedUp.length}, ${deleted.size}`,
  'answers 429, 500, resets': Object.values(faults).join(', '),
  'killed at rows': killed ? before.length : 'not killed',
  'said at the end': finished.stdout,
  'exit codes': [killed?.exit, finished.exit].join(', '),
  'seconds of the last run': Math.round(finished.seconds),
  'users a second in it': Math.round((linked.length - before.length) / finished.seconds),
  missed: missed.length,
  twice,
  'megabytes, first and last quarter, most': `${Math.round(first ?? 0)}, ${Math.round(last ?? 0)}, ${Math.round(Math.max(...memory))}`,
});
if (missed.length + twice > 0 || finished.exit !== 0 || grew) process.exitCode = 1;
await front.stop();
await provider.stop();
await database.drop();
await postgres.stop();
rmSync(folder, { recursive: true, force: true });

import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import path from 'node:path';
import type { Emulator, User } from 'clerk-emulator';
import { escapeIdentifier } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { arrivalTimes } from '../harness/arrival-times';
import { runCommand, startCommand } from '../harness/commands';
import { startProvider } from '../harness/identity-provider';
import { createTestDatabase, type TestDatabase } from '../harness/parts/database';
import { holdInserts } from '../harness/parts/held-row';
import { type Impostor, startImpostor } from '../harness/parts/impostor';
import { SECRET_KEY } from '../harness/service';
import { runCommandHere } from '../vitest/run-command-here';
import { temporaryFolder } from '../vitest/temporary-folder';

const folder = temporaryFolder();
const USERS = 2_000;
/** When the users of a test signed up: long ago, the sign-ups of a test come after them. */
const LONG_AGO = Date.parse('2026-01-01');

let database: TestDatabase;
let provider: Emulator;
/** Stands in front of the provider, and fails as a test says. */
let front: Impostor;
let state: string;

beforeEach(async () => {
  [database, provider, front] = await Promise.all([createTestDatabase(), startProvider(), startImpostor()]);
  front.answer = forward;
  state = path.join(folder, `${randomBytes(4).toString('hex')}.json`);
});

afterEach(async () => {
  await front.stop();
  await provider.stop();
  await database.drop();
});

async function forward({ url, headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const { authorization = '' } = headers;
  const answer = await fetch(`${provider.url}${url}`, { headers: { authorization } });
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
}

/** A user with an address, whom nobody knows. */
function someUser(): User {
  const user = provider.createUser({ email: `${randomBytes(4).toString('hex')}@private.example` });
  provider.deleteUser(user.id);
  return user;
}

/** Users who signed up one after the other, but for six hundred who came at once, by an import. */
function signUp(count: number, since = LONG_AGO): string[] {
  const template = someUser();
  return Array.from({ length: count }, (_, index) => {
    const id = `user_${since}_${index}`;
    const createdAt = since + (index < 900 ? index : Math.max(index - 600, 900)) * 1000;
    provider.store.users.put({ ...template, id, email: `user-${index}@private.example`, createdAt });
    return id;
  });
}

const environment = (more: Record<string, string> = {}) => ({
  IDP_SECRET_KEY: SECRET_KEY,
  DATABASE_URL: database.url,
  CLERK_API_URL: front.url,
  ...more,
});
const backfillIn = (variables: Record<string, string>, ...args: string[]) =>
  runCommandHere(() => import('../../commands/users/backfill'), ['--state', state, ...args], variables);
const backfill = (...args: string[]) => backfillIn(environment(), ...args);
const check = (...args: string[]) =>
  runCommandHere(() => import('../../commands/users/check'), args, environment());
const listed = () => front.calls.filter((call) => call.startsWith('GET /v1/users?'));
const link = (ids: readonly string[]) =>
  database.pool.query(
    'INSERT INTO users (id, identity_provider_user_id) SELECT gen_random_uuid(), unnest($1::text[])',
    [ids],
  );

test('everybody is linked once, beside a rate limit, faults, resets, sign-ups and deletions', async () => {
  const ids = signUp(USERS);
  await link(ids.slice(100, 200));
  const { rows: before } = await database.pool.query('SELECT * FROM users ORDER BY id');
  const tooLong = 'u'.repeat(256);
  provider.store.users.put({ ...someUser(), id: tooLong, createdAt: LONG_AGO + 1 });
  const leavers = [ids[10], ids[450], ids[950], ids[1_000]].flatMap((id) => id ?? []);
  const joiners: string[] = [];
  const faults = ['500', 'reset', '429', 'reset', '500', 'garbage'];
  front.answer = async (request, response) => {
    const isList = request.url?.startsWith('/v1/users?') ?? false;
    const fault = isList && listed().length % 2 === 1 ? faults.shift() : undefined;
    if (fault === '500') return void response.writeHead(500).end('<html>');
    if (fault === 'reset') return void request.socket.resetAndDestroy();
    if (fault === 'garbage')
      return void response.writeHead(502, { 'content-type': 'text/html' }).end('<html>');
    provider.limitRate(fault === '429' ? { requests: 0, seconds: 1 } : undefined);
    await forward(request, response);
    const leaver = isList ? leavers.shift() : undefined;
    if (leaver === undefined) return;
    provider.deleteUser(leaver);
    joiners.push(provider.createUser({ email: `${joiners.length}@joiner.example` }).id);
  };

  const { exit, stdout, stderr } = await runCommand('users/backfill', ['--state', state], environment());
  expect(faults).toEqual([]);
  expect(joiners).toHaveLength(4);
  expect(exit).toBe(1); // over the id that the service would not take
  expect(stderr).toContain(`identityProviderUserId must have at most 255 characters`);
  expect(stderr).toContain('asks for a pause; again in 1 s');
  expect(stdout + stderr).not.toMatch(/@|sk_test/);
  const there = provider.store.users.all().map(({ id }) => id);
  const linked = new Set(await database.users());
  expect(there.filter((id) => !linked.has(id))).toEqual([tooLong]);
  // Who was linked before keeps the internal id.
  expect((await database.pool.query('SELECT * FROM users')).rows).toEqual(expect.arrayContaining(before));
  const [seen = 0, made = 0, already = 0, failed = 0] = (stdout.match(/\d+/g) ?? []).map(Number);
  expect({ sum: made + already + failed, made: made + 100, failed }).toEqual({
    sum: seen,
    made: linked.size,
    failed: 1,
  });
  expect(existsSync(state)).toBe(false);

  provider.deleteUser(tooLong);
  const again = await backfill();
  expect(again).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(/ 0 linked, \d+ already linked, 0 failed\n$/),
  });
});

test('a run that was killed goes on where its rows were committed, and misses nobody', async () => {
  const ids = signUp(USERS);
  const holds: Awaited<ReturnType<typeof holdInserts>>[] = [];
  front.answer = async (request, response) => {
    // The rows of the second page wait, and never come.
    if (listed().length === 2 && holds.length === 0) holds.push(await holdInserts(database));
    await forward(request, response);
  };
  const { child, ended } = startCommand('users/backfill', ['--state', state], environment());
  await expect.poll(() => holds.length).toBe(1);
  expect(await holds[0]?.waiting(1)).toBe(true);
  child.kill('SIGKILL');
  expect((await ended).exit).toBe('SIGKILL');
  await holds[0]?.release();
  const kept = readFileSync(state, 'utf8');
  expect(JSON.parse(kept)).toMatchObject({
    cursor: { seen: [{ id: ids[499] }] },
    figures: { seen: 500, linked: 500 },
  });
  expect(kept).not.toMatch(/@|sk_test/);

  front.calls.length = 0;
  const { exit, stdout } = await backfill();
  expect(listed()[0]).toContain(`created_at_after=${LONG_AGO + 499_000 - 1}`);
  expect(exit).toBe(0);
  expect(stdout).toMatch(/^2000 seen, /);
  expect(await database.users()).toEqual(ids.toSorted());
  expect(existsSync(state)).toBe(false);
});

test('a provider that does not come back ends the run with its state, and the next goes on', async () => {
  const ids = signUp(1_200);
  front.answer = (request, response) =>
    listed().length > 1 ? response.writeHead(503).end() : forward(request, response);
  const broken = await backfill('--patience', '1');
  expect(broken.exit).toBe(1);
  expect(broken.stdout).toBe('500 seen, 500 linked, 0 already linked, 0 failed\n');
  expect(broken.stderr).toContain('Ended early: the identity provider answers with status 503');
  front.answer = forward;
  expect(await backfill()).toMatchObject({
    exit: 0,
    stdout: '1200 seen, 1200 linked, 0 already linked, 0 failed\n',
  });
  expect(await database.users()).toEqual(ids.toSorted());
});

test('a database that fails for a while is waited for', async () => {
  signUp(1_200);
  await database.proxy.treat('reset');
  const { ended } = startCommand('users/backfill', ['--state', state], environment());
  await expect.poll(() => database.proxy.connections).toBeGreaterThan(1);
  await database.proxy.treat('forward');
  const { exit, stdout, stderr } = await ended;
  expect({ exit, stdout }).toEqual({
    exit: 0,
    stdout: '1200 seen, 1200 linked, 0 already linked, 0 failed\n',
  });
  expect(stderr).toMatch(/the database fails \(\w+\); again in/);
});

test('An import of 20,000 users at 100 a second is linked completely', async () => {
  const template = someUser();
  const ids = arrivalTimes(20_000, 100).map((createdAt, index) => {
    const id = `user_${index}`;
    return provider.store.users.put({ ...template, id, email: `${id}@private.example`, createdAt }).id;
  });
  expect(await backfill()).toMatchObject({
    exit: 0,
    stdout: '20000 seen, 20000 linked, 0 already linked, 0 failed\n',
  });
  expect(await database.users()).toEqual(ids.toSorted());
});

test('a dry run counts, changes nothing and keeps no state', async () => {
  const ids = signUp(700);
  await link(ids.slice(0, 30));
  expect(await backfill('--dry-run')).toMatchObject({
    exit: 0,
    stdout: '700 seen, 670 to link, 30 already linked, 0 failed\n',
  });
  expect(await database.users()).toHaveLength(30);
  expect(existsSync(state)).toBe(false);
});

test('since a date, only who signed up from then on is looked at', async () => {
  signUp(20);
  const since = signUp(10, Date.parse('2026-03-01'));
  expect(await backfill('--since', '2026-03-01')).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(/^10 seen, 10 l/),
  });
  expect(await database.users()).toEqual(since.toSorted());
});

test('the state of another run is not gone on with', async () => {
  signUp(1_200);
  front.answer = (request, response) =>
    listed().length > 1 ? response.writeHead(503).end() : forward(request, response);
  await backfill('--patience', '0');
  const kept = readFileSync(state, 'utf8');
  const elsewhere = environment({ DATABASE_URL: database.url.replace(/\/test_\w+/, '/elsewhere') });
  const others = [await backfill('--since', '2026-01-01'), await backfillIn(elsewhere)];
  for (const other of others)
    expect(other).toMatchObject({ exit: 2, stdout: '', stderr: expect.stringContaining('of another') });
  expect(readFileSync(state, 'utf8')).toBe(kept);
  writeFileSync(state, '{}');
  expect(await backfill()).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining('is no state of a backfill'),
  });
});

test('it does not begin over what is wrong, and says what, without a secret', async () => {
  signUp(3);
  const none = { IDP_SECRET_KEY: '', DATABASE_URL: '', CLERK_API_URL: '' };
  const missing = '  - IDP_SECRET_KEY is missing\n  - DATABASE_URL is missing\n';
  const wrong: [string[], Record<string, string>, number, string][] = [
    [['--fast'], {}, 2, "Unknown option '--fast'"],
    [['--since', 'yesterday'], {}, 2, '--since is a date'],
    [['--patience', '1.5'], {}, 2, '--patience is a whole number'],
    [[], none, 2, missing],
    [[], { IDP_SECRET_KEY: 'sk_test_of_another_instance' }, 1, 'refuses IDP_SECRET_KEY'],
  ];
  for (const [args, variables, exit, words] of wrong) {
    const refused = await backfillIn(environment(variables), ...args);
    expect(refused).toMatchObject({ exit, stderr: expect.stringContaining(words) });
    expect(refused.stderr).not.toMatch(/sk_test|postgres(?:ql)?:\/\/|\n\s+at /);
  }
  expect(await database.users()).toEqual([]);
});

test('a role that may not insert is told so, at once', async () => {
  signUp(3);
  const role = `reader_${randomBytes(4).toString('hex')}`;
  await database.pool.query(`CREATE ROLE ${escapeIdentifier(role)} LOGIN PASSWORD 'hidden-password'`);
  await database.pool.query(`GRANT SELECT ON users TO ${escapeIdentifier(role)}`);
  const url = Object.assign(new URL(database.url), { username: role, password: 'hidden-password' }).href;
  const refused = await backfillIn(environment({ DATABASE_URL: url }));
  await database.pool.query(
    `REVOKE ALL ON users FROM ${escapeIdentifier(role)}; DROP ROLE ${escapeIdentifier(role)}`,
  );
  expect(refused).toMatchObject({ exit: 1, stderr: expect.stringContaining('role may not do this (42501)') });
  expect(refused.stderr).not.toContain('hidden-password');
});

test('a check finds what either side lacks, and tells the ids if it is asked to', async () => {
  const ids = signUp(1_200);
  await link(ids.slice(3));
  expect(await check('--ids')).toMatchObject({
    exit: 1,
    stdout: `${ids
      .slice(0, 3)
      .map((id) => `not linked: ${id}\n`)
      .join(
        '',
      )}1200 users at the provider, 3 of them not linked\n1197 rows, 0 of them of nobody at the provider\n`,
  });
  await backfill();
  expect(await runCommand('users/check', [], environment())).toMatchObject({
    exit: 0,
    stdout:
      '1200 users at the provider, 0 of them not linked\n1200 rows, 0 of them of nobody at the provider\n',
  });

  // Anybody who is signed in may register any id: none of them is taken for an order to leave somebody out.
  const strange = ['-user_1', `-${ids[5]}`, '+user_2', 'two\nlines\u001b[2J', '&limit=1', '😀'.repeat(127)];
  await link(strange);
  // Asked for together with the one that it names.
  await database.pool.query(
    `UPDATE users SET id = ('00000000' || substr(id::text, 9))::uuid WHERE identity_provider_user_id = ANY ($1)`,
    [[...strange, ids[5]]],
  );
  provider.deleteUser(ids[700] ?? '');
  const { exit, stdout } = await check('--ids');
  expect(exit).toBe(1);
  expect(stdout).toContain('1206 rows, 7 of them of nobody at the provider\n');
  expect(stdout).toMatch(new RegExp(`^not at the provider: ${ids[700]} \\([0-9a-f-]{36}\\)$`, 'm'));
  expect(stdout.match(/^not at the provider: /gm)).toHaveLength(7);
  expect(stdout).not.toContain('\u001b');
});

import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import path from 'node:path';
import type { Emulator, User } from 'clerk-emulator';
import { escapeIdentifier } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { arrivalTimes } from '../harness/arrival-times';
import { runCommand, startCommand } from '../harness/commands';
import { createTestDatabase, type TestDatabase } from '../harness/dependencies/database';
import { lockInserts, type RowLock } from '../harness/dependencies/row-lock';
import { type StubServer, startStubServer } from '../harness/dependencies/stub-server';
import { startProvider } from '../harness/identity-provider';
import { SECRET_KEY } from '../harness/keys';
import { runCommandInProcess } from '../vitest/run-command-in-process';
import { temporaryFolder } from '../vitest/temporary-folder';

// `npm run users:backfill` registers all users of the identity provider. `npm run users:check` compares the users of the
// provider with the rows of the database. A linked user is one that has a row. A forgotten user is one that an operator has
// deleted with `npm run users:forget`.

const folder = temporaryFolder();
const USERS = 2_000;
/** Default sign-up time of the first user that signUp() creates. */
const LONG_AGO = Date.parse('2026-01-01');

let database: TestDatabase;
let provider: Emulator;
/** A proxy in front of the identity provider. Some tests make the proxy return errors. */
let front: StubServer;
/** Path of the file that stores the progress of a backfill. */
let state: string;

beforeEach(async () => {
  [database, provider, front] = await Promise.all([createTestDatabase(), startProvider(), startStubServer()]);
  front.handler = forward;
  state = path.join(folder, `${randomBytes(4).toString('hex')}.json`);
});

afterEach(async () => {
  await front.stop();
  await provider.stop();
  await database.drop();
});

/** Forwards a request to the identity provider. */
async function forward({ url, headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const { authorization = '' } = headers;
  const forwarded = await fetch(`${provider.url}${url}`, { headers: { authorization } });
  response.writeHead(forwarded.status, Object.fromEntries(forwarded.headers)).end(await forwarded.text());
}

/** Returns the data of a user that does not exist at the provider. */
function userTemplate(): User {
  const user = provider.createUser({ email: `${randomBytes(4).toString('hex')}@private.example` });
  provider.deleteUser(user.id);
  return user;
}

/** Creates users with increasing sign-up times. Users 900 to 1,500 have the same time, as after an import. */
function signUp(count: number, since = LONG_AGO): string[] {
  const template = userTemplate();
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
/** Runs a backfill in this process with the given environment variables. */
const backfillIn = (variables: Record<string, string>, ...args: string[]) =>
  runCommandInProcess(() => import('../../commands/users/backfill'), ['--state', state, ...args], variables);
const backfill = (...args: string[]) => backfillIn(environment(), ...args);
const check = (...args: string[]) =>
  runCommandInProcess(() => import('../../commands/users/check'), args, environment());
/** Returns the requests for pages of the provider's list of users. */
const listed = () => front.calls.filter((call) => call.startsWith('GET /v1/users?'));
const link = (ids: readonly string[]) =>
  database.pool.query(
    'INSERT INTO users (id, identity_provider_user_id) SELECT gen_random_uuid(), unnest($1::text[])',
    [ids],
  );

test('A backfill registers each user whose id is valid, despite a rate limit, errors, connection resets, sign-ups and deletions', async () => {
  const ids = signUp(USERS);
  await link(ids.slice(100, 200));
  const { rows: before } = await database.pool.query('SELECT * FROM users ORDER BY id');
  const tooLong = 'u'.repeat(256);
  provider.store.users.put({ ...userTemplate(), id: tooLong, createdAt: LONG_AGO + 1 });
  const leavers = [ids[10], ids[450], ids[950], ids[1_000]].flatMap((id) => id ?? []);
  const joiners: string[] = [];
  const failures = ['500', 'reset', '429', 'reset', '500', 'garbage'];
  front.handler = async (request, response) => {
    const isList = request.url?.startsWith('/v1/users?') ?? false;
    const failure = isList && listed().length % 2 === 1 ? failures.shift() : undefined;
    if (failure === '500') return void response.writeHead(500).end('<html>');
    if (failure === 'reset') return void request.socket.resetAndDestroy();
    if (failure === 'garbage')
      return void response.writeHead(502, { 'content-type': 'text/html' }).end('<html>');
    if (failure === '429') provider.failures.add({ operation: 'GET /v1/users', status: 429 });
    await forward(request, response);
    const leaver = isList ? leavers.shift() : undefined;
    if (leaver === undefined) return;
    provider.deleteUser(leaver);
    joiners.push(provider.createUser({ email: `${joiners.length}@joiner.example` }).id);
  };

  const { exit, stdout, stderr } = await runCommand('users/backfill', ['--state', state], environment());
  expect(failures).toEqual([]);
  expect(joiners).toHaveLength(4);
  expect(exit).toBe(1); // The id that is too long causes this exit code.
  expect(stderr).toContain(`identityProviderUserId must have at most 255 characters`);
  expect(stderr).toContain('limits the rate of requests. Retry in 1 s');
  expect(stdout + stderr).not.toMatch(/@|sk_test/);
  const there = provider.store.users.all().map(({ id }) => id);
  const linked = new Set(await database.users());
  expect(there.filter((id) => !linked.has(id))).toEqual([tooLong]);
  // Users that already had a row keep their internal id.
  expect((await database.pool.query('SELECT * FROM users')).rows).toEqual(expect.arrayContaining(before));
  // The command prints the numbers of users seen, linked, already linked, forgotten and failed. 100 users had a row before the
  // run.
  const [seen = 0, made = 0, already = 0, , failed = 0] = (stdout.match(/\d+/g) ?? []).map(Number);
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
    stdout: expect.stringMatching(/ 0 linked, \d+ already linked, 0 forgotten, 0 failed\n$/),
  });
});

test('If a backfill is killed, the next run continues after the last committed page and skips no user', async () => {
  const ids = signUp(USERS);
  const locks: RowLock[] = [];
  front.handler = async (request, response) => {
    // The lock blocks the inserts of the second page.
    if (listed().length === 2 && locks.length === 0) locks.push(await lockInserts(database));
    await forward(request, response);
  };
  const { child, ended } = startCommand('users/backfill', ['--state', state], environment());
  await expect.poll(() => locks.length).toBe(1);
  expect(await locks[0]?.waiting(1)).toBe(true);
  child.kill('SIGKILL');
  expect((await ended).exit).toBe('SIGKILL');
  await locks[0]?.release();
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

test('A backfill stops if the provider stays unavailable, and the next run continues from the saved state', async () => {
  const ids = signUp(1_200);
  front.handler = (request, response) =>
    listed().length > 1 ? response.writeHead(503).end() : forward(request, response);
  const broken = await backfill('--retry-seconds', '1');
  expect(broken.exit).toBe(1);
  expect(broken.stdout).toBe('500 seen, 500 linked, 0 already linked, 0 forgotten, 0 failed\n');
  expect(broken.stderr).toContain('Stopped early: the identity provider responds with status 503');
  front.handler = forward;
  expect(await backfill()).toMatchObject({
    exit: 0,
    stdout: '1200 seen, 1200 linked, 0 already linked, 0 forgotten, 0 failed\n',
  });
  expect(await database.users()).toEqual(ids.toSorted());
});

test('A backfill waits for a database that is temporarily unavailable', async () => {
  signUp(1_200);
  await database.proxy.treat('reset');
  const { ended } = startCommand('users/backfill', ['--state', state], environment());
  await expect.poll(() => database.proxy.connections).toBeGreaterThan(1);
  await database.proxy.treat('forward');
  const { exit, stdout, stderr } = await ended;
  expect({ exit, stdout }).toEqual({
    exit: 0,
    stdout: '1200 seen, 1200 linked, 0 already linked, 0 forgotten, 0 failed\n',
  });
  expect(stderr).toMatch(/The database failed \(\w+\)\. Retry in/);
});

test('A backfill registers all 20,000 users of an import that created 100 users per second', async () => {
  const template = userTemplate();
  const ids = arrivalTimes(20_000, 100).map((createdAt, index) => {
    const id = `user_${index}`;
    return provider.store.users.put({ ...template, id, email: `${id}@private.example`, createdAt }).id;
  });
  expect(await backfill()).toMatchObject({
    exit: 0,
    stdout: '20000 seen, 20000 linked, 0 already linked, 0 forgotten, 0 failed\n',
  });
  expect(await database.users()).toEqual(ids.toSorted());
});

test('A dry run of a backfill counts the users and writes no rows and no state file', async () => {
  const ids = signUp(700);
  await link(ids.slice(0, 30));
  expect(await backfill('--dry-run')).toMatchObject({
    exit: 0,
    stdout: '700 seen, 670 to link, 30 already linked, 0 forgotten, 0 failed\n',
  });
  expect(await database.users()).toHaveLength(30);
  expect(existsSync(state)).toBe(false);
});

test('A backfill does not link forgotten users, and a check does not report forgotten users as a difference', async () => {
  const ids = signUp(700);
  await database.pool.query(
    `INSERT INTO forgotten_users SELECT forgotten_user_hash(id), now(), now() + interval '1 day' FROM unnest($1::text[]) AS id`,
    [ids.slice(0, 600)],
  );
  const counts = (linked: string) => `700 seen, 100 ${linked}, 0 already linked, 600 forgotten, 0 failed\n`;
  expect(await backfill('--dry-run')).toMatchObject({ exit: 0, stdout: counts('to link') });
  expect(await backfill()).toMatchObject({ exit: 0, stdout: counts('linked') });
  expect(await database.users()).toEqual(ids.slice(600).toSorted());
  expect(await check('--ids')).toMatchObject({
    exit: 0,
    stdout:
      '700 users at the provider, 0 of them not linked, 600 forgotten\n100 rows, 0 of them not at the provider\n',
  });
});

test('A backfill with --since processes only users that signed up on or after that date', async () => {
  signUp(20);
  const since = signUp(10, Date.parse('2026-03-01'));
  expect(await backfill('--since', '2026-03-01')).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(/^10 seen, 10 l/),
  });
  expect(await database.users()).toEqual(since.toSorted());
});

test('A backfill does not start with an invalid state file or with the state file of a run that had a different --since or database', async () => {
  signUp(1_200);
  front.handler = (request, response) =>
    listed().length > 1 ? response.writeHead(503).end() : forward(request, response);
  await backfill('--retry-seconds', '0');
  const kept = readFileSync(state, 'utf8');
  const elsewhere = environment({ DATABASE_URL: database.url.replace(/\/test_\w+/, '/elsewhere') });
  const others = [await backfill('--since', '2026-01-01'), await backfillIn(elsewhere)];
  for (const other of others)
    expect(other).toMatchObject({
      exit: 2,
      stdout: '',
      stderr: expect.stringContaining(
        'belongs to a backfill with another IDP_SECRET_KEY, database or --since',
      ),
    });
  expect(readFileSync(state, 'utf8')).toBe(kept);
  writeFileSync(state, '{}');
  expect(await backfill()).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining('is not the state of a backfill'),
  });
});

test('A backfill with invalid options or variables registers no user and prints the problem without a secret', async () => {
  signUp(3);
  const none = { IDP_SECRET_KEY: '', DATABASE_URL: '', CLERK_API_URL: '' };
  const missing = '  - IDP_SECRET_KEY is missing\n  - DATABASE_URL is missing\n';
  const wrong: [string[], Record<string, string>, number, string][] = [
    [['--fast'], {}, 2, "Unknown option '--fast'"],
    [['--since', 'yesterday'], {}, 2, '--since must be a date'],
    [['--retry-seconds', '1.5'], {}, 2, '--retry-seconds must be a whole number'],
    [[], none, 2, missing],
    [[], { IDP_SECRET_KEY: 'sk_test_of_another_instance' }, 1, 'rejects IDP_SECRET_KEY'],
  ];
  for (const [args, variables, exit, words] of wrong) {
    const failed = await backfillIn(environment(variables), ...args);
    expect(failed).toMatchObject({ exit, stderr: expect.stringContaining(words) });
    expect(failed.stderr).not.toMatch(/sk_test|postgres(?:ql)?:\/\/|\n\s+at /);
  }
  expect(await database.users()).toEqual([]);
});

test('A backfill stops with a message if the database role lacks the INSERT privilege', async () => {
  signUp(3);
  const role = `reader_${randomBytes(4).toString('hex')}`;
  await database.pool.query(`CREATE ROLE ${escapeIdentifier(role)} LOGIN PASSWORD 'hidden-password'`);
  await database.pool.query(`GRANT SELECT ON users TO ${escapeIdentifier(role)}`);
  const url = Object.assign(new URL(database.url), { username: role, password: 'hidden-password' }).href;
  const failed = await backfillIn(environment({ DATABASE_URL: url }));
  await database.pool.query(
    `REVOKE ALL ON users FROM ${escapeIdentifier(role)}; DROP ROLE ${escapeIdentifier(role)}`,
  );
  expect(failed).toMatchObject({
    exit: 1,
    stderr: expect.stringContaining('role lacks a privilege (42501)'),
  });
  expect(failed.stderr).not.toContain('hidden-password');
});

test('The check command counts the users that are missing in the database or at the provider, and prints their ids with --ids', async () => {
  const ids = signUp(1_200);
  await link(ids.slice(3));
  expect(await check('--ids')).toMatchObject({
    exit: 1,
    stdout: `${ids
      .slice(0, 3)
      .map((id) => `not linked: ${id}\n`)
      .join(
        '',
      )}1200 users at the provider, 3 of them not linked, 0 forgotten\n1197 rows, 0 of them not at the provider\n`,
  });
  await backfill();
  expect(await runCommand('users/check', [], environment())).toMatchObject({
    exit: 0,
    stdout:
      '1200 users at the provider, 0 of them not linked, 0 forgotten\n1200 rows, 0 of them not at the provider\n',
  });

  // A signed-in caller may register any id. Such an id must not change the query to the provider.
  const strange = ['-user_1', `-${ids[5]}`, '+user_2', 'two\nlines\u001b[2J', '&limit=1', '😀'.repeat(127)];
  await link(strange);
  // The command reads the rows in the order of their internal ids, and requests the users of consecutive rows in one query to
  // the provider. The UPDATE gives the rows of `strange` and `ids[5]` the lowest internal ids, so that one query contains both
  // `ids[5]` and `-${ids[5]}`. An unescaped minus sign would exclude the user `ids[5]` from the result.
  await database.pool.query(
    `UPDATE users SET id = ('00000000' || substr(id::text, 9))::uuid WHERE identity_provider_user_id = ANY ($1)`,
    [[...strange, ids[5]]],
  );
  provider.deleteUser(ids[700] ?? '');
  const { exit, stdout } = await check('--ids');
  expect(exit).toBe(1);
  expect(stdout).toContain('1206 rows, 7 of them not at the provider\n');
  expect(stdout).toMatch(new RegExp(`^not at the provider: ${ids[700]} \\([0-9a-f-]{36}\\)$`, 'm'));
  expect(stdout.match(/^not at the provider: /gm)).toHaveLength(7);
  expect(stdout).not.toContain('\u001b');
});

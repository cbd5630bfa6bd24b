import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Emulator, User } from 'clerk-emulator';
import { escapeIdentifier } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand, startCommand } from '../harness/commands';
import { createTestDatabase, type TestDatabase } from '../harness/dependencies/database';
import { lockInserts, type RowLock } from '../harness/dependencies/row-lock';
import { type StubServer, startStubServer } from '../harness/dependencies/stub-server';
import { startProvider } from '../harness/identity-provider';
import { SECRET_KEY } from '../harness/keys';
import { runUsersCommand } from '../vitest/run-users-command';

// `npm run users -- backfill` registers all users of the identity provider. `npm run users -- check` compares the users of the
// provider with the rows of the database. A linked user is one that has a row. A forgotten user is one that an operator has
// deleted with `npm run users -- forget`.

/** Default sign-up time of the first user that signUp() creates. */
const LONG_AGO = Date.parse('2026-01-01');

let database: TestDatabase;
let provider: Emulator;
/** A proxy in front of the identity provider. Some tests make the proxy return errors. */
let front: StubServer;

beforeEach(async () => {
  [database, provider, front] = await Promise.all([createTestDatabase(), startProvider(), startStubServer()]);
  front.handler = forward;
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
const users = (...args: string[]) => runUsersCommand(args, environment());
/** Returns the requests for pages of the provider's list of users. */
const listed = () => front.calls.filter((call) => call.startsWith('GET /v1/users?'));
const link = (ids: readonly string[]) =>
  database.pool.query(
    'INSERT INTO users (id, identity_provider_user_id) SELECT gen_random_uuid(), unnest($1::text[])',
    [ids],
  );

test('A backfill registers each user whose id is valid, despite a rate limit, errors, connection resets, sign-ups and deletions', async () => {
  const ids = signUp(2_000);
  await link(ids.slice(100, 200));
  const { rows: before } = await database.pool.query('SELECT * FROM users ORDER BY id');
  const tooLong = 'u'.repeat(256);
  provider.store.users.put({ ...userTemplate(), id: tooLong, createdAt: LONG_AGO + 1 });
  const leavers = [ids[10], ids[450]].flatMap((id) => id ?? []);
  const failures = ['500', 'reset', '429', 'garbage'];
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
    provider.createUser({ email: `${leaver}@joiner.example` });
  };

  const { exit, stdout, stderr } = await runCommand('users', ['backfill'], environment());
  expect([failures, leavers]).toEqual([[], []]);
  expect(exit).toBe(1); // The id that is too long causes this exit code.
  expect(stderr).toContain(`identityProviderUserId must have at most 255 characters`);
  expect(stderr).toContain('limits the rate of requests. Retry in 1 s');
  expect(stdout).toMatch(/^\d+ seen, \d+ linked, \d+ already linked, 0 forgotten, 1 failed\n$/);
  expect(stdout + stderr).not.toMatch(/@|sk_test/);
  const there = provider.store.users.all().map(({ id }) => id);
  const linked = new Set(await database.users());
  expect(there.filter((id) => !linked.has(id))).toEqual([tooLong]);
  // Users that already had a row keep their internal id.
  expect((await database.pool.query('SELECT * FROM users')).rows).toEqual(expect.arrayContaining(before));
  provider.deleteUser(tooLong);
  expect(await users('backfill')).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(/ 0 linked, \d+ already linked, 0 forgotten, 0 failed\n$/),
  });
});

test('If a backfill is killed, a second backfill links the remaining users', async () => {
  const ids = signUp(1_200);
  let locking: Promise<RowLock> | undefined;
  front.handler = async (request, response) => {
    // The lock blocks the inserts of the second page.
    if (listed().length === 2) locking ??= lockInserts(database);
    await locking;
    await forward(request, response);
  };
  const { child, ended } = startCommand('users', ['backfill'], environment());
  await expect.poll(() => locking).toBeDefined();
  const lock = await locking;
  expect(await lock?.waiting(1)).toBe(true);
  child.kill('SIGKILL');
  expect((await ended).exit).toBe('SIGKILL');
  await lock?.release();
  expect(await users('backfill')).toMatchObject({
    exit: 0,
    stdout: '1200 seen, 700 linked, 500 already linked, 0 forgotten, 0 failed\n',
  });
  expect(await database.users()).toEqual(ids.toSorted());
});

test('If the provider stays unavailable, a backfill stops and prints the command that continues it', async () => {
  const ids = signUp(1_200);
  front.handler = (request, response) =>
    listed().length > 1 ? response.writeHead(503).end() : forward(request, response);
  const broken = await users('backfill', '--retry-seconds', '1');
  expect(broken).toMatchObject({
    exit: 1,
    stdout: '500 seen, 500 linked, 0 already linked, 0 forgotten, 0 failed\n',
    stderr: expect.stringContaining('Stopped early: the identity provider responds with status 503'),
  });
  front.handler = forward;
  const [, command = ''] = /^To continue: npm run users -- (.*)\n/m.exec(broken.stderr) ?? [];
  expect(await users(...command.split(' '))).toMatchObject({
    exit: 0,
    stdout: '701 seen, 700 linked, 1 already linked, 0 forgotten, 0 failed\n',
  });
  expect(await database.users()).toEqual(ids.toSorted());
});

test('A backfill waits for a database that is temporarily unavailable', async () => {
  signUp(10);
  await database.proxy.treat('reset');
  const { ended } = startCommand('users', ['backfill'], environment());
  await expect.poll(() => database.proxy.connections).toBeGreaterThan(1);
  await database.proxy.treat('forward');
  expect(await ended).toMatchObject({
    exit: 0,
    stdout: '10 seen, 10 linked, 0 already linked, 0 forgotten, 0 failed\n',
    stderr: expect.stringMatching(/The database failed \(\w+\)\. Retry in/),
  });
});

test('A backfill links neither forgotten users nor, with --since, older users, and a dry run links no user. A check does not report forgotten users', async () => {
  const ids = signUp(700);
  await link(ids.slice(0, 30));
  const recent = signUp(10, Date.parse('2026-03-01'));
  await database.pool.query(
    `INSERT INTO forgotten_users SELECT forgotten_user_hash(id), now(), now() + interval '1 day' FROM unnest($1::text[]) AS id`,
    [ids.slice(600)],
  );
  expect(await users('backfill', '--dry-run')).toMatchObject({
    exit: 0,
    stdout: '710 seen, 580 to link, 30 already linked, 100 forgotten, 0 failed\n',
  });
  expect(await database.users()).toHaveLength(30);
  expect(await users('backfill', '--since', '2026-03-01')).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(/^10 seen, 10 l/),
  });
  expect(await database.users()).toEqual([...ids.slice(0, 30), ...recent].toSorted());
  await users('backfill');
  expect(await users('check', '--ids')).toMatchObject({
    exit: 0,
    stdout:
      '710 users at the provider, 0 of them not linked, 100 forgotten\n610 rows, 0 of them not at the provider\n',
  });
});

test('A backfill with invalid options or variables, or with a role without privileges, registers no user and prints the problem without a secret', async () => {
  signUp(3);
  const role = `reader_${randomBytes(4).toString('hex')}`;
  await database.pool.query(`CREATE ROLE ${escapeIdentifier(role)} LOGIN PASSWORD 'hidden-password'`);
  await database.pool.query(`GRANT SELECT ON users TO ${escapeIdentifier(role)}`);
  const asReader = Object.assign(new URL(database.url), { username: role, password: 'hidden-password' }).href;
  const missing = '  - IDP_SECRET_KEY is missing\n  - DATABASE_URL is missing\n';
  const wrong: [string[], Record<string, string>, number, string][] = [
    [['--fast'], {}, 2, "unknown option '--fast'"],
    [['--since', 'yesterday'], {}, 2, 'Pass a date'],
    [['--retry-seconds', '1.5'], {}, 2, 'Pass a whole number'],
    [['--replay'], {}, 2, 'events/index.ts has no handler of user.updated.'],
    [[], { IDP_SECRET_KEY: '', DATABASE_URL: '', CLERK_API_URL: '' }, 2, missing],
    [[], { IDP_SECRET_KEY: 'sk_test_of_another_instance' }, 1, 'rejects IDP_SECRET_KEY'],
    [[], { DATABASE_URL: asReader }, 1, 'role lacks a privilege (42501)'],
  ];
  for (const [args, variables, exit, words] of wrong) {
    const failed = await runUsersCommand(['backfill', ...args], environment(variables));
    expect(failed).toMatchObject({ exit, stderr: expect.stringContaining(words) });
    expect(failed.stderr).not.toMatch(/sk_test|postgres(?:ql)?:\/\/|hidden-password|\n\s+at /);
  }
  await database.pool.query(
    `REVOKE ALL ON users FROM ${escapeIdentifier(role)}; DROP ROLE ${escapeIdentifier(role)}`,
  );
  expect(await database.users()).toEqual([]);
});

test('The check command counts the users that are missing in the database or at the provider, and prints their ids with --ids', async () => {
  const ids = signUp(800);
  await link(ids.slice(3));
  const [first, second, third] = ids;
  expect(await users('check', '--ids')).toMatchObject({
    exit: 1,
    stdout: `not linked: ${first}\nnot linked: ${second}\nnot linked: ${third}\n800 users at the provider, 3 of them not linked, 0 forgotten\n797 rows, 0 of them not at the provider\n`,
  });
  await users('backfill');

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
  const { exit, stdout } = await users('check', '--ids');
  expect(exit).toBe(1);
  expect(stdout).toContain('806 rows, 7 of them not at the provider\n');
  expect(stdout).toMatch(new RegExp(`^not at the provider: ${ids[700]} \\([0-9a-f-]{36}\\)$`, 'm'));
  expect(stdout.match(/^not at the provider: /gm)).toHaveLength(7);
  expect(stdout).not.toContain('\u001b');
});

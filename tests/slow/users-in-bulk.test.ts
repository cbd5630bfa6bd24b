import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Emulator, User } from 'clerk-emulator';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../harness/dependencies/database';
import { type StubServer, startStubServer } from '../harness/dependencies/stub-server';
import { startProvider } from '../harness/identity-provider';
import { SECRET_KEY } from '../harness/keys';
import { runLinksCommand } from '../vitest/run-links-command';

// `npm run users -- backfill` registers all users of the identity provider. A linked user is one that has a row. A forgotten user is
// one that an operator has deleted with `npm run users -- forget`.

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
const users = (...args: string[]) => runLinksCommand('user', args, environment());
/** Returns the requests for pages of the provider's list of users. */
const listed = () => front.calls.filter((call) => call.startsWith('GET /v1/users?'));

test('If the provider stays unavailable, a backfill stops and prints the command that continues it', async () => {
  const ids = signUp(1_200);
  expect(await users('backfill', '--dry-run')).toMatchObject({
    exit: 0,
    stdout: '1200 seen, 1200 to link, 0 already linked, 0 forgotten, 0 failed\n',
  });
  front.calls.length = 0;
  front.handler = (request, response) =>
    listed().length > 1 ? response.writeHead(503).end() : forward(request, response);
  const broken = await users('backfill', '--retry-seconds', '1');
  expect(broken).toMatchObject({
    exit: 1,
    stdout: '500 seen, 500 linked, 0 already linked, 0 forgotten, 0 failed\n',
    stderr: expect.stringMatching(
      /responds with status 503\. Retry in 0\.5 s\n.*Stopped early: the identity provider responds with status 503/s,
    ),
  });
  front.handler = forward;
  const [, command = ''] = /^To continue: npm run users -- (.*)\n/m.exec(broken.stderr) ?? [];
  expect(await users(...command.split(' '))).toMatchObject({
    exit: 0,
    stdout: '701 seen, 700 linked, 1 already linked, 0 forgotten, 0 failed\n',
  });
  expect(await database.users()).toEqual(ids.toSorted());
});

test('A backfill with invalid options or variables, or with a role without privileges, registers no user and prints the problem without a secret', async () => {
  signUp(3);
  const { url: asReader } = await database.createRole('GRANT SELECT ON users TO $role');
  const missing = '  - IDP_SECRET_KEY is missing\n  - DATABASE_URL is missing\n';
  const wrong: [string[], Record<string, string>, number, string][] = [
    [['--since', 'yesterday'], {}, 2, 'Pass a date'],
    [['--retry-seconds', '1.5'], {}, 2, 'Pass a whole number'],
    [['--replay'], {}, 2, 'events/index.ts has no handler of user.updated.'],
    [[], { IDP_SECRET_KEY: '', DATABASE_URL: '', CLERK_API_URL: '' }, 2, missing],
    [[], { IDP_SECRET_KEY: 'sk_test_of_another_instance' }, 1, 'rejects IDP_SECRET_KEY'],
    [[], { DATABASE_URL: asReader }, 1, 'role lacks a privilege (42501)'],
  ];
  for (const [args, variables, exit, words] of wrong) {
    const failed = await runLinksCommand('user', ['backfill', ...args], environment(variables));
    expect(failed).toMatchObject({ exit, stderr: expect.stringContaining(words) });
    expect(failed.stderr).not.toMatch(/sk_test|postgres(?:ql)?:\/\/|hidden-password|\n\s+at /);
  }
  expect(await database.users()).toEqual([]);
});

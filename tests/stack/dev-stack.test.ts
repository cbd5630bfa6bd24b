import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { startKvServer } from '../../dev/kv';
import { requireStore } from '../../dev/stack/dependencies';
import { readSettings } from '../../dev/stack/settings';
import { freePort, listen } from '../../dev/system/listen';
import { createTestDatabase, query, serverOfThisRun } from '../harness/dependencies/database';
import { createLocalStack, type Details } from '../harness/stack';
import { stopAfterTest } from '../vitest/stop-after-all';

// The local stack consists of the service and its dependencies on this machine. `npm run dev` starts it.
const local = createLocalStack();
afterAll(() => local.remove());

const Me = z.object({ isAuthenticated: z.boolean(), userId: z.string(), identityProviderUserId: z.string() });

/** Variables of a developer's shell that belong to other programs. Each of them would break a start that reads it. */
const FOREIGN = {
  PGSSLMODE: 'require',
  PGHOST: 'elsewhere.example',
  NODE_ENV: 'production',
  LC_ALL: 'xx_XX.UTF-8',
  CLERK_SECRET_KEY: 'foreign',
  CLERK_API_URL: 'http://127.0.0.1:1',
  NEXT_PUBLIC_CLERK_IS_SATELLITE: 'true',
  // Node.js 24 sends requests through this proxy.
  NODE_USE_ENV_PROXY: '1',
  HTTP_PROXY: 'http://127.0.0.1:1',
};

/** Runs a command line in a shell. */
async function paste(line = '') {
  const { written, exited } = local.run('sh', ['-c', line], FOREIGN);
  return { code: await exited, ...written };
}

async function storedUsers(databaseUrl: string) {
  const rows = await query(databaseUrl, 'SELECT identity_provider_user_id AS user, id FROM users');
  return new Map(rows.map(({ user, id }) => [user, id]));
}

async function expectAllStopped({ app, databaseUrl, kv, identityProvider }: Details) {
  await expect.poll(() => local.processes()).toEqual([]);
  for (const url of [app, databaseUrl, kv.url, identityProvider.url]) {
    const { hostname, port } = new URL(url);
    const cause = expect.objectContaining({ code: 'ECONNREFUSED' });
    await expect(fetch(`http://${hostname}:${port}/`)).rejects.toMatchObject({ cause });
  }
}

describe('A running local stack', async () => {
  const port = await freePort();
  const stack = await local.start('dev', FOREIGN, ['-p', String(port)]);

  test('The local stack starts on the port of -p and ends its output with the addresses and three commands that work', async () => {
    expect(stack.details.app).toBe(`http://localhost:${port}`);
    const [summary = ''] = /\nUp in [\s\S]*/.exec(stack.printed) ?? [];
    expect(summary.match(/^ {2}[A-Z].*:\d+/gm)).toHaveLength(5);
    const [createUser, token, me] = [...summary.matchAll(/^ {2}(npm run .*)$/gm)].map(
      ([, line = '']) => line,
    );

    const created = await paste(createUser);
    expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^user_\w+\n$/) });
    expect(created.stderr).toContain('200 {"received":true,"eventType":"user.created"}');
    expect(await paste(token)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[\w.-]+\n$/) });
    const id = created.stdout.trim();
    expect(Me.parse(JSON.parse((await paste(me)).stdout))).toEqual({
      isAuthenticated: true,
      userId: (await storedUsers(stack.details.databaseUrl)).get(id),
      identityProviderUserId: id,
    });
  });

  test('The local stack does not start twice', async () => {
    const second = local.launch('dev');
    expect(await second.exited).toBe(1);
    expect(second.written.stderr).toContain(`is already running at ${stack.details.app}`);
    expect((await paste('npm run -s local create-user')).code).toBe(0);
    expect(await paste('npm run -s local me nonsense')).toMatchObject({
      code: 1,
      stdout: '{"message":"Unauthorized"}\n',
    });
  });

  test.each([
    ['npm run -s local doctor', 0, /\n\n\d+ ok, 0 warnings, 0 failed, 0 skipped\n$/],
    ['npm run -s local users check', 0, /^\d+ users at Clerk, 0 of them not linked, 0 forgotten\n/],
    ['npm run -s local users due', 0, /^0 due, 0 forgotten, 0 kept, 0 pending\n$/],
    ['npm run -s local -- users show nobody --shout', 2, /^$/],
    ['npm run -s local -- token --oauth https://a.example/ --scope read write', 0, /^eyJ\S+\n$/],
    ['npm run -s local database-url', 0, /^postgresql:/],
    ['npm run -s local nothing', 1, /^$/],
  ])(
    'The local stack runs operator commands with the environment of the service: %s',
    async (command, code, stdout) => {
      expect(await paste(command)).toMatchObject({ code, stdout: expect.stringMatching(stdout) });
    },
  );

  test('The local stack leaves no process after Ctrl-C, or when it is killed or loses Next.js, and keeps its users', async () => {
    const users = await storedUsers(stack.details.databaseUrl);
    if (stack.child.pid !== undefined) process.kill(-stack.child.pid, 'SIGINT');
    expect(await stack.exited).toBe(0);
    await expectAllStopped(stack.details);

    expect(await paste('npm run -s local token')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('No local stack'),
    });

    const killed = await local.start('dev');
    killed.child.kill('SIGKILL');
    await killed.exited;
    await expectAllStopped(killed.details);

    // The test finds the process of the application in /proc.
    if (!existsSync('/proc/self/cmdline')) return;
    const last = await local.start('dev');
    expect(await storedUsers(last.details.databaseUrl)).toEqual(users);
    expect(last.details.identityProvider.url).toBe(stack.details.identityProvider.url);
    const application = local
      .processes()
      .find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('next/dist/bin/next'));
    process.kill(Number(application), 'SIGKILL');
    expect(await last.exited).toBe(1);
    expect(last.written.stderr).toContain('Next.js exited unexpectedly');
    await expectAllStopped(last.details);
  });
});

test('With an unmigrated database in DATABASE_URL, the local stack prints the command that migrates it. The stack ends when its parent process ends', async () => {
  const database = await createTestDatabase({ ...serverOfThisRun(), template: 'template0' });
  onTestFinished(() => database.drop());
  const own = { DATABASE_URL: database.url };
  // Like npm, this shell does not forward SIGTERM.
  const command = `'${process.execPath}' --import tsx dev/stack/main.ts dev & wait`;
  const { child, written, exited } = local.run('sh', ['-c', command], own);
  await expect.poll(() => written.stdout, { timeout: 120_000 }).toContain('Ctrl-C stops everything');
  const { host } = new URL(database.url);
  expect(written.stdout).toContain(`${host} (yours, from DATABASE_URL)`);
  const [, advice = ''] =
    /^The database at .* is not migrated. Missing: .*_create_users.*: (npm run .*)$/m.exec(written.stderr) ??
    [];
  expect(await local.run('sh', ['-c', advice], own).exited).toBe(0);
  expect((await paste('npm run -s local create-user')).code).toBe(0);
  expect((await database.pool.query('SELECT * FROM users')).rowCount).toBe(1);
  child.kill('SIGTERM');
  // `exited` resolves when all processes have closed the output pipe.
  await exited;
  await expect.poll(() => local.processes()).toEqual([]);
});

test.each([
  ['DATABASE_URL', 'postgresql://me:hidden@localhost', 'ECONNREFUSED'],
  ['KV_REST_API_URL', 'http://me:hidden@127.0.0.1', 'no response'],
])(
  'If the server at the address in %s is not running, the local stack exits and prints one line without a secret',
  async (name, address, reason) => {
    const port = await freePort();
    const token = name === 'KV_REST_API_URL' ? { KV_REST_API_TOKEN: 'hidden' } : {};
    const { written, exited } = local.launch('dev', { [name]: `${address}:${port}`, ...token });
    expect(await exited).toBe(1);
    expect(written.stderr).toContain(`cannot use ${address.split('@')[1]}:${port} from ${name} (`);
    expect(written.stderr).toContain(reason);
    expect(written.stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(written.stdout + written.stderr).not.toMatch(/hidden|Up in/);
  },
);

test('A KV store that rejects the token prevents the start of the local stack', async () => {
  const options = { token: 'the token' };
  const { url, token } = stopAfterTest(await startKvServer(options));
  await expect(requireStore(url, 'hidden')).rejects.toThrow('status 401');
  await requireStore(url, token);
});

test.each([
  [{ IDP_SECRET_KEY: 'sk_test_hidden' }, /IDP_PUBLISHABLE_KEY, IDP_WEBHOOK_SIGNING_SECRET: not set/],
  [{ KV_REST_API_TOKEN: 'hidden' }, /KV_REST_API_URL: not set/],
  [{ PORT: 'hidden' }, /PORT: not a port number/],
  [{ DATABASE_URL: 'mysql://hidden' }, /DATABASE_URL: not a postgresql:\/\/ URL/],
])(
  'An error about the settings of the local stack names the missing or invalid variables but not their values: %j',
  (more, words) => {
    expect(() => readSettings(more)).toThrow(words);
    expect(() => readSettings(more)).not.toThrow('hidden');
  },
);

test('The local stack does not start anything if the port in PORT is in use', async () => {
  const occupied = createServer();
  onTestFinished(() => void occupied.close());
  const port = String(await listen(occupied));
  const { written, exited } = local.launch('dev', { PORT: port });
  expect(await exited).toBe(1);
  expect(written.stderr).toContain(`Port ${port} is in use`);
  expect(existsSync(path.join(local.folder, 'stack.json'))).toBe(false);
});

test('With --help, the local stack prints its options and does not start', async () => {
  const { written, exited } = local.launch('dev', {}, ['--help']);
  expect(await exited).toBe(0);
  expect(written.stdout).toMatch(/^Usage: npm run dev -- [\s\S]*-p, --port <number>/);
});

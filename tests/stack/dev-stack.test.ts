import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { Client } from 'pg';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { memoryEngine } from '../../dev/kv/memory';
import { startKvServer } from '../../dev/kv/server';
import { connectToRedis, missingMigrations, requireStore } from '../../dev/stack/external-services';
import { readSettings } from '../../dev/stack/settings';
import { freePort, listen } from '../../dev/system/listen';
import {
  codeOnConsole,
  PASSWORD,
  shownLink,
  signInWithoutForm,
  signUp,
  visit,
} from '../harness/browser/browser';
import { launchBrowser } from '../harness/browser/chromium';
import { createTestDatabase, serverOfThisRun } from '../harness/dependencies/database';
import { createLocalStack, type Details } from '../harness/stack';
import { stopAfterTest } from '../vitest/stop-after-all';

// The local stack consists of the service and its dependencies on this machine. `npm run dev` starts it.
const Me = z.object({ isAuthenticated: z.boolean(), userId: z.string(), identityProviderUserId: z.string() });

const Package = z.object({ scripts: z.record(z.string(), z.string()) });

const local = createLocalStack();
afterAll(() => local.remove());

async function startStack() {
  const stack = await local.start('dev');
  const commands = [...stack.printed.matchAll(/^ {2}(npm run .*)$/gm)].map(([, command = '']) => command);
  return { ...stack, commands };
}

/** Runs a command line in a shell. */
async function paste(line = '') {
  const { written, exited } = local.run('sh', ['-c', line]);
  return { code: await exited, ...written };
}

async function storedUsers(databaseUrl: string) {
  const client = new Client({ connectionString: databaseUrl });
  try {
    await client.connect();
    const statement =
      'SELECT id AS "userId", identity_provider_user_id AS "identityProviderUserId" FROM users';
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

async function expectAllStopped({ app, databaseUrl, kv, identityProvider }: Details) {
  await expect.poll(() => local.processes().length === 0).toBe(true);
  for (const url of [app, databaseUrl, kv.url, identityProvider.url]) {
    const { hostname, port } = new URL(url);
    const cause = expect.objectContaining({ code: 'ECONNREFUSED' });
    await expect(fetch(`http://${hostname}:${port}/`)).rejects.toMatchObject({ cause });
  }
}

describe('Without environment variables, and with port 3000 in use', async () => {
  const occupied = createServer();
  afterAll(() => void occupied.close());
  await listen(occupied, 3000).catch(() => {}); // Rejects if another process already uses the port.
  const stack = await startStack();

  test('The local stack starts without configuration on a free port, the commands that it prints work, and a second stack does not start', async () => {
    expect(stack.commands).toHaveLength(3);
    const [createUser, token, me] = stack.commands;

    const created = await paste(createUser);
    expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^user_\w+\n$/) });
    expect(created.stderr).toContain('200 {"received":true,"eventType":"user.created"}');
    const identityProviderUserId = created.stdout.trim();
    const byWebhook = await storedUsers(stack.details.databaseUrl);
    expect(byWebhook).toEqual([{ userId: expect.any(String), identityProviderUserId }]);

    expect(await paste(token)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+\n$/),
    });

    const seen = await paste(me);
    expect(seen.stderr).toContain('/users/v1/me: 200');
    expect(Me.parse(JSON.parse(seen.stdout))).toEqual({ isAuthenticated: true, ...byWebhook[0] });
    expect(await paste('npm run -s local database-url')).toEqual({
      code: 0,
      stdout: `${stack.details.databaseUrl}\n`,
      stderr: '',
    });
    expect(await paste('npm run -s local me nonsense')).toMatchObject({
      code: 1,
      stdout: '{"message":"Unauthorized"}\n',
    });

    const { port } = new URL(stack.details.app);
    expect(stack.printed).toContain(`Port 3000 is in use. The application uses port ${port}.\n`);
    expect(Number(port)).toBeGreaterThan(3000);

    const second = local.launch('dev');
    expect(await second.exited).toBe(1);
    expect(second.written.stderr).toContain(`is already running at ${stack.details.app}`);
  });

  test('The doctor and the users commands run against the local stack, an unknown option is rejected, and an unknown command prints the list of commands', async () => {
    const doctor = await paste('npm run -s local doctor');
    expect(doctor).toMatchObject({ code: 0, stderr: '' });
    expect(doctor.stdout).toMatch(/\n\n15 ok, 0 warnings, 0 failed, 0 skipped\n$/);
    expect(await paste('npm run -s local users:check')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+ users at the provider, 0 of them not linked, 0 forgotten\n/),
    });
    expect(await paste('npm run -s local -- users:forget --due')).toMatchObject({
      code: 0,
      stdout: '0 due, 0 forgotten, 0 kept, 0 pending\n',
    });
    expect(await paste('npm run -s local -- users:show nobody --shout')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("'--shout'"),
    });
    const unknown = await paste('npm run -s local users:nothing');
    expect(unknown).toMatchObject({ code: 1, stdout: '' });
    const { scripts } = Package.parse(JSON.parse(readFileSync('package.json', 'utf8')));
    for (const name of Object.keys(scripts).filter((each) => each.startsWith('users:')))
      expect(unknown.stderr).toContain(name);
  });

  test('A new user of the local stack signs up at the printed URL, the account page shows the ids of the user, and the console shows the webhook delivery', async () => {
    const browser = await launchBrowser();
    onTestFinished(() => browser.close());
    const printedUrl = (name: string) =>
      new RegExp(`^ {2}${name} +(http\\S+)$`, 'm').exec(stack.printed)?.[1] ?? 'not printed';
    const email = 'newcomer@example.com';
    await visit(browser, { url: new URL(printedUrl('Console')).origin }, {}, (console) =>
      visit(browser, { url: printedUrl('Application') }, {}, async (page) => {
        await page.goto('/');
        await page.getByRole('link', { name: 'Create an account' }).waitFor();
        await signUp(page, email, async () => {
          expect(new URL(page.url()).pathname).toBe('/sign-up/verify-email-address');
          const link = page.getByRole('link', { name: 'Open the console' });
          expect(await link.getAttribute('href')).toBe(printedUrl('Console'));
          await console.goto(printedUrl('Console'));
          return codeOnConsole(console, email);
        });
        const { identityProviderUserId, userId } = await shownLink(page);
        expect(await storedUsers(stack.details.databaseUrl)).toContainEqual({
          userId,
          identityProviderUserId,
        });

        const about = console.locator('.deliveries > li').filter({ hasText: email });
        const delivery = about.filter({ has: console.getByText('user.created', { exact: true }) });
        await delivery.getByText('Delivered').waitFor();
        await delivery.locator('summary').getByText('HTTP 200').waitFor();
        await delivery.locator('summary').click();
        await delivery.getByText('{"received":true,"eventType":"user.created"}').waitFor();
      }),
    );
  });

  test('The pages of the local stack show no issue in the overlay of next dev and log no error to the browser console', async () => {
    const browser = await launchBrowser();
    onTestFinished(() => browser.close());
    const email = 'overlay@example.com';
    const { app, identityProvider } = stack.details;
    const created = await fetch(`${identityProvider.consoleUrl}/api/users`, {
      method: 'POST',
      headers: { origin: identityProvider.consoleUrl, 'content-type': 'application/json' },
      body: JSON.stringify({ email, password: PASSWORD }),
    });
    expect(created.status).toBe(201);
    await visit(browser, { url: app }, { expected: [/status of 404 .*\/no-such-page/] }, async (page) => {
      const expectNoIssues = async (path: string) => {
        // If React finds an issue while it hydrates the page, next dev shows the issue before the browser SDK has loaded.
        await page.waitForFunction('window.Clerk?.loaded');
        await page.locator('nextjs-portal').waitFor({ state: 'attached' });
        expect(await page.locator('nextjs-portal [data-issues-open]').allInnerTexts(), path).toEqual([]);
      };
      for (const path of ['/', '/docs', '/sign-in', '/sign-up', '/no-such-page']) {
        await page.goto(path);
        await expectNoIssues(path);
      }
      await signInWithoutForm(page, email);
      await shownLink(page);
      await expectNoIssues('/account');
    });
  });

  test('All processes of the local stack end when its main process is killed or receives Ctrl-C, and the users survive a restart', async () => {
    const users = await storedUsers(stack.details.databaseUrl);
    stack.child.kill('SIGKILL');
    await stack.exited;
    await expectAllStopped(stack.details);

    const next = await startStack();
    expect(await storedUsers(next.details.databaseUrl)).toEqual(users);
    const me = next.commands[2];
    const seen = await paste(me);
    const { isAuthenticated, ...user } = Me.parse(JSON.parse(seen.stdout));
    expect(isAuthenticated).toBe(true);
    expect(users).toContainEqual(user);

    if (next.child.pid !== undefined) process.kill(-next.child.pid, 'SIGINT');
    expect(await next.exited).toBe(0);
    await expectAllStopped(next.details);
    const late = await paste(me);
    expect(late).toMatchObject({ code: 1, stdout: '' });
    expect(late.stderr).toContain('No local stack');
  });

  // The test finds the process of the application in /proc.
  test.runIf(existsSync('/proc/self/cmdline'))(
    'The local stack stops all processes and reports the reason when Next.js exits',
    async () => {
      const last = await startStack();
      const application = local
        .processes()
        .find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('next/dist/bin/next'));
      process.kill(Number(application), 'SIGKILL');
      expect(await last.exited).toBe(1);
      expect(last.written.stderr).toContain('Next.js exited unexpectedly');
      await expectAllStopped(last.details);
    },
  );
});

test('The local stack prints the command that migrates an unmigrated database in DATABASE_URL, and ends when its parent process ends', async () => {
  const database = await createTestDatabase({ ...serverOfThisRun(), template: 'template0' });
  onTestFinished(() => database.drop());
  const own = { DATABASE_URL: database.url };
  // Like npm, this shell does not forward SIGTERM.
  const command = `'${process.execPath}' --import tsx dev/stack/main.ts dev & wait`;
  const { child, written, exited } = local.run('sh', ['-c', command], own);
  await expect.poll(() => written.stdout, { timeout: 120_000 }).toContain('Ctrl-C stops everything');
  const { host } = new URL(database.url);
  expect(written.stdout).toContain(`${host} (yours, from DATABASE_URL)`);
  const warning = new RegExp(
    `The database at ${host} is not migrated. Missing: .*_create_users.*: (npm run .*)$`,
    'm',
  );
  expect(written.stderr).toMatch(warning);
  const [, advice = ''] = warning.exec(written.stderr) ?? [];
  expect(await local.run('sh', ['-c', advice], own).exited).toBe(0);

  expect((await paste('npm run -s local create-user')).code).toBe(0);
  expect(await paste('npm run -s local database-url')).toMatchObject({ code: 1, stdout: '' });
  expect((await database.pool.query('SELECT * FROM users')).rowCount).toBe(1);
  child.kill('SIGTERM');
  // `exited` resolves when all processes have closed the output pipe.
  await exited;
  await expect.poll(() => local.processes()).toEqual([]);
});

test.each([
  ['DATABASE_URL', 'postgresql://me:hidden@localhost', 'ECONNREFUSED'],
  ['REDIS_URL', 'redis://me:hidden@127.0.0.1', 'no response'],
  ['KV_REST_API_URL', 'http://me:hidden@127.0.0.1', 'no response'],
] as const)(
  'If the server at the address in %s is not running, the local stack exits and prints one line without a secret',
  async (name, address, reason) => {
    const port = await freePort();
    const token = name === 'KV_REST_API_URL' ? { KV_REST_API_TOKEN: 'hidden' } : {};
    const { written, exited } = local.launch('dev', { [name]: `${address}:${port}`, ...token });
    expect(await exited).toBe(1);
    const place = `${address.split('@')[1]}:${port}`;
    expect(written.stderr).toContain(`cannot use ${place} from ${name} (`);
    expect(written.stderr).toContain(reason);
    expect(written.stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(written.stdout + written.stderr).not.toMatch(/hidden|Up in/);
  },
);

test('missingMigrations(), requireStore() and connectToRedis() reject if the server accepts the connection but does not respond', async () => {
  const silent = createServer((socket) => void socket.on('error', () => {}));
  onTestFinished(() => void silent.close());
  const place = `127.0.0.1:${await listen(silent)}`;
  const checks = [
    missingMigrations(`postgresql://me:hidden@${place}/db`),
    requireStore(`http://${place}`, 'hidden'),
    connectToRedis(`redis://me:hidden@${place}`),
  ];
  await Promise.all(
    checks.map((check) =>
      expect(check).rejects.toThrow(new RegExp(`cannot use ${place} from \\w+ \\(no response.*\\)`)),
    ),
  );
});

test('requireStore() rejects if the KV store rejects the token, and resolves if the token is right', async () => {
  const options = { token: 'the token', engine: memoryEngine() };
  const { url, token } = stopAfterTest(await startKvServer(options));
  await expect(requireStore(url, 'hidden')).rejects.toThrow('it rejects the token with 401');
  await requireStore(url, token);
});

test.each([
  [{ IDP_SECRET_KEY: 'sk_test_hidden' }, /IDP_PUBLISHABLE_KEY, IDP_WEBHOOK_SIGNING_SECRET: not set/],
  [{ KV_REST_API_TOKEN: 'hidden' }, /KV_REST_API_URL: not set/],
  [
    { PORT: 'hidden', IDP_KEY_STYLE: 'hidden' },
    /PORT: not a port number[\s\S]*IDP_KEY_STYLE: neither test nor live/,
  ],
  [{ REDIS_URL: 'http://hidden' }, /REDIS_URL: not a redis:\/\/ URL/],
  [{ DATABASE_URL: 'mysql://hidden' }, /DATABASE_URL: not a postgresql:\/\/ URL/],
])(
  'readSettings() throws an error that names the missing or invalid variables but not their values: %j',
  (more, words) => {
    expect(() => readSettings(more)).toThrow(words);
    expect(() => readSettings(more)).not.toThrow('hidden');
  },
);

test('The local stack exits and names the missing variable if the environment is incomplete', async () => {
  const { written, exited } = local.launch('dev', { KV_REST_API_TOKEN: 'hidden' });
  expect(await exited).toBe(1);
  expect(written.stderr).toMatch(/KV_REST_API_URL: not set/);
  expect(written.stderr).not.toContain('hidden');
});

test('The local stack does not start anything if the port in PORT is in use', async () => {
  const occupied = createServer();
  onTestFinished(() => void occupied.close());
  const port = String(await listen(occupied));
  const { written, exited } = local.launch('dev', { PORT: port });
  expect(await exited).toBe(1);
  expect(written.stderr).toContain(`Port ${port} is in use`);
  expect(existsSync(path.join(local.folder, 'stack.json'))).toBe(false);
});

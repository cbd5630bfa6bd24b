import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { waitUntil } from '../../dev/processes';
import { BUILD_FOLDER, withoutServiceVariables } from '../support/build';

const project = fileURLToPath(new URL('../..', import.meta.url));
const folder = path.join(mkdtempSync(path.join(os.tmpdir(), 'dev-stack-test-')), 'local');
const children: ChildProcess[] = [];

/** Empty counts as not set, and keeps out what an `.env.local` of this checkout may hold. */
const nothingGiven = Object.fromEntries(
  [
    ...['DATABASE_URL', 'KV_REST_API_URL', 'KV_REST_API_TOKEN', 'REDIS_URL', 'PORT'],
    ...['IDP_SECRET_KEY', 'IDP_PUBLISHABLE_KEY', 'IDP_WEBHOOK_SIGNING_SECRET', 'IDP_AUTHORIZED_PARTIES'],
    ...['IDP_KEY_STYLE', 'IDP_RETRY_SCALE'],
  ].map((name) => [name, '']),
);
const environment = {
  ...withoutServiceVariables(),
  ...nothingGiven,
  LOCAL_FOLDER: folder,
  NEXT_DIST_DIR: BUILD_FOLDER,
};

const Details = z.object({
  app: z.string(),
  databaseUrl: z.string(),
  kv: z.object({ url: z.string() }),
  identityProvider: z.object({ url: z.string() }),
});
const Me = z.object({ isAuthenticated: z.boolean(), userId: z.string(), identityProviderUserId: z.string() });

afterAll(async () => {
  for (const { pid, exitCode, signalCode } of children) {
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL');
  }
  await waitUntil(() => processesOfTheStack().length === 0, 20_000);
  rmSync(path.dirname(folder), { recursive: true, force: true });
});

/** In a process group of its own, as a terminal starts it, so that Ctrl-C can be sent to all of it. */
function run(command: string, args: readonly string[], more: Record<string, string> = {}) {
  const child = spawn(command, args, {
    cwd: project,
    env: { ...environment, ...more },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk) => {
      written[name] += chunk;
    });
  }
  const exited = once(child, 'close').then(([code, signal]) => code ?? signal);
  return { child, written, exited };
}

const runStack = (more: Record<string, string> = {}) =>
  run(process.execPath, ['--import', 'tsx', 'dev/main.ts', 'dev'], more);

async function startStack() {
  const stack = runStack();
  const settled = () =>
    stack.written.stdout.includes('Ctrl-C stops everything') || stack.child.exitCode !== null;
  await waitUntil(settled, 120_000);
  if (stack.child.exitCode !== null) throw new Error(`The stack ended:\n${stack.written.stderr}`);
  const printed = [...stack.written.stdout.matchAll(/^ {2}(npm run .*)$/gm)].map(
    ([, command = '']) => command,
  );
  const { details } = z
    .object({ details: Details })
    .parse(JSON.parse(readFileSync(path.join(folder, 'stack.json'), 'utf8')));
  return { ...stack, printed, details };
}

/** Runs a line as a shell does into which it was pasted. */
async function paste(line = '') {
  const { written, exited } = run('sh', ['-c', line]);
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

/** Every process that was started with this test's folder in its environment: what the stack started, and they. */
function processesOfTheStack(): string[] {
  if (!existsSync('/proc/self/environ')) return [];
  return readdirSync('/proc').filter((name) => {
    try {
      return (
        /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'utf8').includes(`LOCAL_FOLDER=${folder}`)
      );
    } catch {
      return false;
    }
  });
}

async function isRefused(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  try {
    await fetch(`http://${hostname}:${port}/`);
    return false;
  } catch (error) {
    return error instanceof Error && String(error.cause).includes('ECONNREFUSED');
  }
}

async function nothingIsLeft({ app, databaseUrl, kv, identityProvider }: z.infer<typeof Details>) {
  expect(await waitUntil(() => processesOfTheStack().length === 0, 20_000)).toBe(true);
  for (const url of [app, databaseUrl, kv.url, identityProvider.url]) expect(await isRefused(url)).toBe(true);
}

test('with no environment the stack comes up, the printed commands work as pasted, and Ctrl-C leaves nothing', async () => {
  const stack = await startStack();
  expect(stack.printed).toHaveLength(3);
  const [createUser, token, me] = stack.printed;

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
  expect(await paste('npm run -s local me nonsense')).toMatchObject({
    code: 1,
    stdout: '{"message":"Unauthorized"}\n',
  });

  const second = runStack();
  expect(await second.exited).toBe(1);
  expect(second.written.stderr).toContain(`already runs at ${stack.details.app}`);

  if (stack.child.pid !== undefined) process.kill(-stack.child.pid, 'SIGINT');
  expect(await stack.exited).toBe(0);
  await nothingIsLeft(stack.details);
  const late = await paste(me);
  expect(late).toMatchObject({ code: 1, stdout: '' });
  expect(late.stderr).toContain('The local stack does not run');
});

test('a killed stack leaves nothing running, and the next start knows its users', async () => {
  const first = await startStack();
  const created = await paste(first.printed[0]);
  expect(created.code).toBe(0);
  const users = await storedUsers(first.details.databaseUrl);
  first.child.kill('SIGKILL');
  await first.exited;
  await nothingIsLeft(first.details);

  const next = await startStack();
  expect(await storedUsers(next.details.databaseUrl)).toEqual(users);
  const seen = await paste(next.printed[2]);
  expect(users).toContainEqual({
    userId: Me.parse(JSON.parse(seen.stdout)).userId,
    identityProviderUserId: created.stdout.trim(),
  });

  // The application ends by itself: so does everything else, and the stack says why.
  const application = processesOfTheStack().find((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('next/dist/bin/next'),
  );
  process.kill(Number(application), 'SIGKILL');
  expect(await next.exited).toBe(1);
  expect(next.written.stderr).toContain('Next.js ended by itself');
  await nothingIsLeft(next.details);
});

test.each([
  [{ IDP_SECRET_KEY: 'sk_test_hidden' }, /IDP_PUBLISHABLE_KEY, IDP_WEBHOOK_SIGNING_SECRET: not set/],
  [{ KV_REST_API_TOKEN: 'hidden' }, /KV_REST_API_URL: not set/],
  [
    { PORT: 'hidden', IDP_KEY_STYLE: 'hidden' },
    /PORT: is no port[\s\S]*IDP_KEY_STYLE: is neither test nor live/,
  ],
  [{ REDIS_URL: 'http://hidden' }, /REDIS_URL: is no redis:\/\/ URL/],
])('half an environment is refused with what is missing: %j', async (more, words) => {
  const { written, exited } = runStack(more);
  expect(await exited).toBe(1);
  expect(written.stderr).toMatch(words);
  expect(written.stderr).not.toContain('hidden');
});

test('a wanted port that is taken is refused, and nothing was started', async () => {
  const occupied = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void occupied.close());
  await once(occupied, 'listening');
  const address = occupied.address();
  const port = String(address && typeof address === 'object' ? address.port : 0);
  const { written, exited } = runStack({ PORT: port });
  expect(await exited).toBe(1);
  expect(written.stderr).toContain(`Port ${port} is taken`);
  expect(existsSync(path.join(folder, 'stack.json'))).toBe(false);
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { verifyToken } from '@clerk/backend';
import { expect, onTestFinished, test } from 'vitest';
import { startForTest } from './helpers/emulator';
import { startHttpServer } from './helpers/http-server';
import { stopAfterTest } from './helpers/stop';
import { temporaryFolder } from './helpers/temporary-folder';

const cli = fileURLToPath(new URL('../dist/cli.js', import.meta.url));

/** Node.js 24 sends requests through this proxy, which does not run. */
const PROXY = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: 'http://127.0.0.1:1' };

/**
 * Starts a program in a process group of its own. The returned `end` resolves once the program and all its descendants have
 * ended, because they share stdout.
 */
function start(program: string, args: readonly string[], cwd = '.', variables = {}) {
  const env = { ...process.env, ...PROXY, ...variables, npm_execpath: 'npm-cli.js' };
  const child = spawn(program, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'], cwd, env });
  onTestFinished(() => {
    if (child.exitCode === null) child.kill('SIGKILL');
  });
  const [exited, stdout, stderr] = [once(child, 'exit'), text(child.stdout), text(child.stderr)];
  return {
    child,
    /** Sends a signal to the process group, as a terminal does on Ctrl-C. */
    signalGroup: (signal: NodeJS.Signals) => process.kill(-(child.pid ?? 0), signal),
    async end() {
      const [[code], output, errors] = await Promise.all([exited, stdout, stderr]);
      return { code, output, errors };
    },
  };
}

const FREE_PORTS = ['--port', '0', '--console-port', '0'];
const node = (program: string) => [process.execPath, '--input-type=module', '--eval', program];
const startCli = (args: readonly string[], cwd?: string) => start(process.execPath, [cli, ...args], cwd);
const dev = (program: string, options: readonly string[] = [], cwd?: string) =>
  startCli(['dev', ...FREE_PORTS, ...options, '--', ...node(program)], cwd);

/** Source of a program that ignores Ctrl-C and the closing of the terminal. It exits by itself only after the test timeout. */
const PERSISTENT = `setTimeout(() => {}, 300_000);
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {});`;
const PRINT_VARIABLES = 'console.log(JSON.stringify(process.env));';

test('clerk-emulator dev passes working variables to its command and prints a Content-Security-Policy', async () => {
  const program = `
    const { env } = process;
    const status = async (url, headers) => (await fetch(url, { headers })).status;
    env.BACKEND = await status(env.CLERK_API_URL + '/v1/users', { authorization: 'Bearer ' + env.CLERK_SECRET_KEY });
    env.FRONTEND = await status(env.NEXT_PUBLIC_CLERK_PROXY_URL + '/v1/environment');
    env.CONSOLE = await status(env.CLERK_EMULATOR_CONSOLE_URL);
    ${PRINT_VARIABLES}`;
  const webhook = ['--webhook-url', 'http://127.0.0.1:1/', '--webhook-secret', 'whsec_c2VjcmV0'];
  const { code, output, errors } = await dev(program, webhook).end();
  expect(code).toBe(0);
  const variables = JSON.parse(output);
  const url = variables.CLERK_API_URL;
  expect(variables).toMatchObject({
    BACKEND: '200',
    FRONTEND: '200',
    CONSOLE: '200',
    CLERK_WEBHOOK_SECRET: 'whsec_c2VjcmV0',
    CLERK_WEBHOOK_SIGNING_SECRET: 'whsec_c2VjcmV0',
    NEXT_PUBLIC_CLERK_SIGN_IN_URL: `${url}/sign-in`,
    VITE_CLERK_PUBLISHABLE_KEY: variables.CLERK_PUBLISHABLE_KEY,
    PATH: expect.any(String),
  });
  expect(errors).toContain(`script-src ${url}; connect-src ${url};`);
});

test('clerk-emulator dev keeps the sign-in page of an application, and gives an older SDK clerk-js 5', async () => {
  const folder = temporaryFolder();
  writeFileSync(path.join(folder, '.env.local'), 'NEXT_PUBLIC_CLERK_SIGN_IN_URL=/login\n');
  const sdk = path.join(folder, 'node_modules/@clerk/nextjs');
  mkdirSync(sdk, { recursive: true });
  writeFileSync(path.join(sdk, 'package.json'), '{"dependencies":{"@clerk/shared":"^3.48.0"}}');
  const variables = JSON.parse((await dev(PRINT_VARIABLES, [], folder).end()).output);
  expect(variables).not.toHaveProperty('NEXT_PUBLIC_CLERK_SIGN_IN_URL');
  expect(variables.NEXT_PUBLIC_CLERK_SIGN_UP_URL).toMatch(/sign-up$/);
  expect(variables.NEXT_PUBLIC_CLERK_JS_URL).toContain('clerk-js@5');
});

test('clerk-emulator without dev prints variables for an .env file', async () => {
  const { child, end } = startCli(FREE_PORTS);
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  const { code, output } = await end();
  expect(code).toBe(0);
  expect(output).toMatch(/^CLERK_SECRET_KEY=sk_test_\w+$/m);
  expect(output).toMatch(/^# OAuth: http.*\/\.well-known\/oauth-authorization-server$/m);
});

test('clerk-emulator token prints a session token of a user with an active organization', async () => {
  const { variables, publicKeyPem: jwtKey, ...emulator } = await startForTest();
  const { id: sub } = emulator.createUser({ email: 'ada@example.com' });
  const { id } = emulator.createOrganization({ name: 'Ada', createdBy: sub });
  const { output } = await start(process.execPath, [cli, 'token', sub, id], '.', variables).end();
  expect(await verifyToken(output.trim(), { jwtKey })).toMatchObject({ sub, o: { id } });
});

test.each([
  ['exits with the exit code of its command', () => dev('process.exit(7)'), 7, ''],
  ['exits with 128 plus a signal', () => dev("process.kill(process.pid, 'SIGKILL')"), 137, ''],
  ['token needs the variables of an emulator', () => startCli(['token', 'user_1']), 1, 'CLERK_API_URL'],
  ['needs a command', () => startCli(['dev', 'next', 'dev']), 1, 'Unexpected argument'],
  ['rejects a port that is not a number', () => startCli(['--port', 'x']), 1, '--port: x is not valid.'],
  [
    'reports a command that does not exist',
    () => startCli(['dev', ...FREE_PORTS, '--', 'no-such-command']),
    1,
    'The command no-such-command did not start',
  ],
] as const)('clerk-emulator %s', async (_, run, code, message) => {
  expect(await run().end()).toMatchObject({ code, errors: expect.stringContaining(message) });
});

test('clerk-emulator reports that its port is in use', async () => {
  const { port } = new URL(stopAfterTest(await startHttpServer(() => new Response())).url);
  const { code, errors } = await startCli(['--port', port]).end();
  expect([code, errors]).toEqual([1, `Port ${port} is in use.\n`]);
});

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'clerk-emulator dev forwards %s once and exits with the exit code of its command',
  async (signal) => {
    const { child, signalGroup, end } = dev(`
      ${PERSISTENT}
      process.removeAllListeners('${signal}');
      let count = 0;
      process.on('${signal}', () => {
        count += 1;
        setTimeout(() => process.exit(40 + count), 200);
      });
      console.log('ready');`);
    await once(child.stdout, 'data');
    // The command has its own process group, so it gets the signal only from dev.
    signalGroup(signal);
    expect((await end()).code).toBe(41);
  },
);

const CHILD = `
  import { spawn } from 'node:child_process';
  const child = spawn(process.execPath, ['--eval', ${JSON.stringify(`${PERSISTENT} console.log('ready')`)}],
    { stdio: ['ignore', 'inherit', 'inherit'] });`;

test('When its command exits, clerk-emulator dev ends a process that the command has left running', async () => {
  const { code } = await dev(`${CHILD} child.once('spawn', () => process.exit(9));`).end();
  expect(code).toBe(9);
});

test('A SIGTERM to the shell in which npx runs clerk-emulator ends the emulator and the command', async () => {
  const command = [
    process.execPath,
    cli,
    'dev',
    ...FREE_PORTS,
    '--',
    ...node(`${PERSISTENT} console.log('ready')`),
  ];
  const quoted = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  const { child, end } = start('sh', ['-c', `${quoted}; exit 0`]);
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  await end();
});

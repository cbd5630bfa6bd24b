import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const bin = fileURLToPath(new URL('../dist/cli.js', import.meta.url));

/**
 * Starts the clerk-emulator command. The returned `end` resolves once the command and all its descendants have ended, because
 * they share stdout.
 */
function startCli(args: readonly string[]) {
  const child = spawn(process.execPath, [bin, ...args], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => {
    if (child.exitCode === null) child.kill('SIGKILL');
  });
  const [exited, stdout, stderr] = [once(child, 'exit'), text(child.stdout), text(child.stderr)];
  return {
    child,
    async end() {
      const [[code], output, errors] = await Promise.all([exited, stdout, stderr]);
      return { code, output, errors };
    },
  };
}

const node = (program: string) => [process.execPath, '--input-type=module', '--eval', program];
const dev = (program: string) => startCli(['dev', '--', ...node(program)]);

/** Source of a program that ignores Ctrl-C and the closing of the terminal. It exits by itself only after the test timeout. */
const PERSISTENT = `setTimeout(() => {}, 300_000);
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {});`;

test('clerk-emulator dev passes the keys and the addresses of the Backend API, the Frontend API and the browser SDK to its command', async () => {
  const program = `
    const { env } = process;
    const status = async (url, headers) => (await fetch(url, { headers })).status;
    console.log(JSON.stringify({
      backend: await status(env.CLERK_API_URL + '/v1/users', { authorization: 'Bearer ' + env.CLERK_SECRET_KEY }),
      frontend: await status(env.NEXT_PUBLIC_CLERK_PROXY_URL + '/v1/environment'),
      scripts: [env.NEXT_PUBLIC_CLERK_JS_URL, env.NEXT_PUBLIC_CLERK_UI_URL].map((url) => new URL(url).pathname),
      sameKey: env.CLERK_PUBLISHABLE_KEY === env.NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY,
      jwtKey: env.CLERK_JWT_KEY.split('\\n')[0],
      webhook: env.CLERK_WEBHOOK_SIGNING_SECRET ?? null,
      console: (await fetch(env.CLERK_EMULATOR_CONSOLE_URL)).status,
      other: env.PATH !== undefined,
    }));`;
  const { code, output } = await dev(program).end();
  expect(code).toBe(0);
  expect(JSON.parse(output)).toEqual({
    backend: 200,
    frontend: 200,
    scripts: ['/npm/@clerk/clerk-js@6/dist/clerk.browser.js', '/npm/@clerk/ui@1/dist/ui.browser.js'],
    sameKey: true,
    jwtKey: '-----BEGIN PUBLIC KEY-----',
    webhook: null,
    console: 200,
    other: true,
  });
});

test('With a webhook endpoint, clerk-emulator dev passes the signing secret to its command', async () => {
  const webhook = ['--webhook-url', 'http://127.0.0.1:1/', '--webhook-secret', 'whsec_c2VjcmV0'];
  const program = 'console.log(process.env.CLERK_WEBHOOK_SIGNING_SECRET)';
  const { output } = await startCli(['dev', ...webhook, '--', ...node(program)]).end();
  expect(output).toBe('whsec_c2VjcmV0\n');
});

test.each([
  ['the exit code of its command', 'process.exit(7)', 7],
  ['128 plus the number of the signal that ended its command', "process.kill(process.pid, 'SIGKILL')", 137],
])('clerk-emulator dev exits with %s', async (_, program, code) => {
  expect((await dev(program).end()).code).toBe(code);
});

test.each([
  [['dev'], 'dev needs a command after --.'],
  [['dev', 'next'], "Unexpected argument 'next'"],
])('clerk-emulator rejects the arguments %j and explains the error', async (args, message) => {
  const { code, errors } = await startCli(args).end();
  expect([code, errors]).toEqual([1, expect.stringContaining(message)]);
});

test('clerk-emulator dev exits with an error if its command does not exist', async () => {
  const { code, errors } = await startCli(['dev', '--', 'no-such-command']).end();
  expect([code, errors]).toEqual([1, expect.stringContaining('The command no-such-command did not start')]);
});

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'clerk-emulator dev forwards %s once and exits with the exit code of its command',
  async (signal) => {
    const { child, end } = dev(`
      ${PERSISTENT}
      process.removeAllListeners('${signal}');
      let count = 0;
      process.on('${signal}', () => {
        count += 1;
        setTimeout(() => process.exit(40 + count), 200);
      });
      console.log('ready');`);
    await once(child.stdout, 'data');
    // Sends the signal to the process group of dev, as a terminal does on Ctrl-C. The command has its own process group, so it
    // gets the signal only from dev.
    process.kill(-(child.pid ?? 0), signal);
    expect((await end()).code).toBe(41);
  },
);

test('After Ctrl-C, clerk-emulator dev kills a command that does not end', async () => {
  const { child, end } = dev(`${PERSISTENT} console.log('ready');`);
  await once(child.stdout, 'data');
  process.kill(-(child.pid ?? 0), 'SIGINT');
  expect((await end()).code).toBe(137);
});

const CHILD = `
  import { spawn } from 'node:child_process';
  const child = spawn(process.execPath, ['--eval', ${JSON.stringify(`${PERSISTENT} console.log('ready')`)}],
    { stdio: ['ignore', 'inherit', 'inherit'] });`;

test('After Ctrl-C, clerk-emulator dev ends a process that the command has left running', async () => {
  const { child, end } = dev(CHILD);
  await once(child.stdout, 'data');
  process.kill(-(child.pid ?? 0), 'SIGINT');
  expect((await end()).code).toBe(130);
});

test('When its command exits, clerk-emulator dev ends a process that the command has left running', async () => {
  const { code } = await dev(`${CHILD} child.once('spawn', () => process.exit(9));`).end();
  expect(code).toBe(9);
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { text as streamText } from 'node:stream/consumers';
import { endProcess, killOnExit, waitUntil } from '../../dev/system/processes';
import { ME } from '../../tests/harness/requests';
import { runStep } from '../temporary-project';

/** Runs a command. Throws if it fails. */
export async function step(command: string, cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  if ((await runStep(['bash', '-c', command], cwd, env)) !== 0) throw new Error(`Failed: ${command}`);
}

/** Runs a command and prints its standard output. Resolves to the exit code and the output. */
export async function output(command: string, cwd: string, env: NodeJS.ProcessEnv) {
  const child = spawn('bash', ['-c', command], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 120_000,
  });
  const closed = once(child, 'close');
  const text = await streamText(child.stdout);
  const [status] = await closed;
  console.log(`\n$ ${command}\n${text}`);
  return { status, text };
}

/** Starts an application with `next start` or `next dev`, which logs to `server.log`, and stops it after `use`. */
export async function withServer(
  folder: string,
  command: 'start' | 'dev',
  port: number,
  env: NodeJS.ProcessEnv,
  use: () => Promise<void>,
): Promise<void> {
  const args = ['node_modules/next/dist/bin/next', command, '-H', 'localhost', '-p', String(port)];
  const log = openSync(`${folder}/server.log`, 'w');
  const stdio = ['ignore', log, log] as const;
  const child = spawn(process.execPath, args, { cwd: folder, env, detached: true, stdio: [...stdio] });
  if (child.pid === undefined) throw new Error('The application did not start.');
  const cancelKill = killOnExit(-child.pid, 'SIGTERM');
  try {
    const isReady = () =>
      fetch(`http://localhost:${port}${ME}`).then(
        ({ status }) => status < 500,
        () => false,
      );
    if (!(await waitUntil(isReady, 60_000)))
      throw new Error('The application does not respond, or responds with a 5xx.');
    await use();
  } finally {
    await endProcess(-child.pid, [{ signal: 'SIGTERM', milliseconds: 10_000 }]);
    cancelKill();
  }
}

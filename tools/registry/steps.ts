import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import path from 'node:path';
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

/** Starts applications with `next start`, which log to `server.log` in their folders, and stops them after `use`. */
export async function withServers(
  servers: readonly { readonly folder: string; readonly port: number }[],
  env: NodeJS.ProcessEnv,
  use: () => Promise<void>,
): Promise<void> {
  const [first, ...others] = servers;
  if (first === undefined) return use();
  const { folder, port } = first;
  const args = [
    path.resolve('node_modules/next/dist/bin/next'),
    'start',
    '-H',
    'localhost',
    '-p',
    String(port),
  ];
  const log = openSync(path.join(folder, 'server.log'), 'w');
  const child = spawn('npx', args, {
    cwd: folder,
    env,
    detached: true,
    stdio: ['ignore', log, log],
  });
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
    await withServers(others, env, use);
  } finally {
    await endProcess(-child.pid, [{ signal: 'SIGTERM', milliseconds: 10_000 }]);
    cancelKill();
  }
}

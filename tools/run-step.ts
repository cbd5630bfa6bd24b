import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { endProcess, killOnExit } from '../dev/system/processes';

/** Id of the process group of the running step, negative as `process.kill` expects it. */
let running: number | undefined;

/** Runs a command in a new process group, so that a signal reaches all its processes. Resolves with the exit code. */
export async function runStep(
  [command, ...args]: readonly [string, ...string[]],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<unknown> {
  console.log(`\n$ ${command} ${args.join(' ')}`);
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'inherit', 'inherit'] });
  if (child.pid === undefined) return 1;
  running = -child.pid;
  const cancelKill = killOnExit(running, 'SIGTERM');
  const [code] = await once(child, 'exit');
  cancelKill();
  running = undefined;
  return code;
}

/** Stops the running step. */
export async function stopStep(): Promise<void> {
  if (running !== undefined) await endProcess(running, [{ signal: 'SIGINT', milliseconds: 15_000 }]);
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { variables } from '#lib/env';
import { killOnExit } from '../../dev/system/processes';
import { withoutServiceVariables } from './build';

/** A running command of `commands/`. */
export interface Command {
  readonly child: ChildProcess;
  /** Resolves with the output. `exit` is the exit code, or the name of the signal that ended the process. */
  readonly ended: Promise<{ readonly exit: unknown; readonly stdout: string; readonly stderr: string }>;
}

/** Every variable of the service, set to the empty string, so that a command does not read a value from `.env.local`. */
const EMPTY_VARIABLES = Object.fromEntries(Object.keys(variables.shape).map((name) => [name, '']));

/** Starts a command of `commands/` without a terminal. All variables of the service that `environment` lacks are empty. */
export function startCommand(
  name: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Command {
  const child = spawn(process.execPath, ['--import', 'tsx', `commands/${name}.ts`, ...args], {
    env: { ...withoutServiceVariables(), ...EMPTY_VARIABLES, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (child.pid !== undefined) child.once('exit', killOnExit(child.pid, 'SIGTERM'));
  const written = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (chunk) => {
      written[stream] += chunk;
    });
  }
  return {
    child,
    ended: once(child, 'close').then(([code, signal]) => ({ exit: code ?? signal, ...written })),
  };
}

/** Starts a command and resolves once it has ended. */
export const runCommand = (...command: Parameters<typeof startCommand>) => startCommand(...command).ended;

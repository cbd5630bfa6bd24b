import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { variables } from '#lib/env';
import { killOnExit } from '../../dev/system/processes';
import { withoutServiceVariables } from './build';

/** An operator's command that runs. */
export interface Command {
  readonly child: ChildProcess;
  /** The exit code, or the signal that ended it, and what it wrote. */
  readonly ended: Promise<{ readonly exit: unknown; readonly stdout: string; readonly stderr: string }>;
}

/** What keeps a `.env.local` of this checkout out: what is set, if only to nothing, stays. */
const NOTHING = Object.fromEntries(Object.keys(variables.shape).map((name) => [name, '']));

/** Starts a command of `commands/`, with these variables alone, where nobody can answer. */
export function startCommand(
  name: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Command {
  const child = spawn(process.execPath, ['--import', 'tsx', `commands/${name}.ts`, ...args], {
    env: { ...withoutServiceVariables(), ...NOTHING, ...environment },
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

/** The same, until it ended. */
export const runCommand = (...command: Parameters<typeof startCommand>) => startCommand(...command).ended;

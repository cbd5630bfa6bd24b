import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { variables } from '#lib/base/env';
import { killOnExit } from '../../dev/system/processes';
import { withoutServiceVariables } from './build';

/** A child process and its output. */
export interface Run {
  readonly child: ChildProcess;
  readonly written: { readonly stdout: string; readonly stderr: string };
  /** Resolves with the exit code, or the signal that ended the process, once the process has closed its output. */
  readonly exited: Promise<unknown>;
}

/**
 * Starts a program without a terminal. Variables of the service that `environment` lacks are empty, so that the program does not
 * read them from `.env.local`. With `group`, the program runs in a process group of its own, so that the group can get a Ctrl-C.
 * The program, or its group, is killed when this process ends.
 */
export function startProgram(
  file: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  group = false,
): Run {
  const empty = Object.fromEntries(Object.keys(variables.shape).map((name) => [name, '']));
  const child = spawn(file, args, {
    env: { ...withoutServiceVariables(), ...empty, ...environment },
    detached: group,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (child.pid !== undefined) child.once('exit', killOnExit(group ? -child.pid : child.pid, 'SIGTERM'));
  const written = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (chunk) => {
      written[stream] += chunk;
    });
  }
  return { child, written, exited: once(child, 'close').then(([code, signal]) => code ?? signal) };
}

/** Starts a command of `commands/`. */
export function startCommand(
  name: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
) {
  const run = startProgram(
    process.execPath,
    ['--import', 'tsx', `commands/${name}.ts`, ...args],
    environment,
  );
  return { child: run.child, ended: run.exited.then((exit) => ({ exit, ...run.written })) };
}

/** Starts a command and resolves once it has ended. */
export const runCommand = (...command: Parameters<typeof startCommand>) => startCommand(...command).ended;

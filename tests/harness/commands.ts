import { type StartedProcess, startProcess } from '../../dev/system/start-process';
import { withoutServiceVariables } from './build';
import { VARIABLE_NAMES } from './keys';

/**
 * Starts a program without a terminal. Variables of the service that `environment` lacks are empty, so that the program does not
 * read them from `.env.local`. With `group`, the program runs in a process group of its own, so that the group can get a Ctrl-C.
 */
export function startProgram(
  file: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  group = false,
): StartedProcess {
  const empty = Object.fromEntries(VARIABLE_NAMES.map((name) => [name, '']));
  const env = { ...withoutServiceVariables(), ...empty, ...environment };
  return startProcess(file, args, { env, group, graceMs: 40_000 });
}

/** Starts a command of `commands/`. */
export function startCommand(
  name: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
) {
  const { child, written, exited } = startProgram(
    process.execPath,
    ['--import', 'tsx', `commands/${name}.ts`, ...args],
    environment,
  );
  return { child, ended: exited.then((exit) => ({ exit, ...written })) };
}

/** Starts a command and resolves once it has ended. */
export const runCommand = (...command: Parameters<typeof startCommand>) => startCommand(...command).ended;

import nextEnv from '@next/env';
import { Command, CommanderError } from 'commander';
import { InvalidEnvironmentError, safeMessage, UsageError } from '#lib/base/errors';

/** Exit code of a command: 0 for success, 1 for a failure, 2 for invalid arguments or an invalid variable. */
export type ExitCode = 0 | 1 | 2;

/** Maximum time from the end of a command to the exit. A request that timed out does not delay the exit further. */
const EXIT_TIMEOUT_MS = 2_000;

/** Creates the command-line interface of one script in package.json. */
export const createProgram = (script: string, description: string): Command =>
  new Command(`npm run ${script} --`)
    .description(description)
    .exitOverride()
    .showHelpAfterError('(--help lists the options)');

/**
 * Loads the .env files, as the application does, and runs the selected command. Sets the exit code. Prints the message of an
 * error without the stack and without secrets.
 */
export async function runProgram(program: Command): Promise<void> {
  try {
    nextEnv.loadEnvConfig(process.cwd(), process.env.NODE_ENV === 'development');
    await program.parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : 2; // commander has printed the help or the message
    } else {
      print(safeMessage(error), process.stderr);
      process.exitCode = error instanceof UsageError || error instanceof InvalidEnvironmentError ? 2 : 1;
    }
  }
}

/** Runs a program as the main program of this process, and then closes its connections. */
export async function runMain(program: Command, close?: () => Promise<void>): Promise<void> {
  await runProgram(program);
  await close?.();
  setTimeout(() => process.exit(), EXIT_TIMEOUT_MS).unref();
}

/**
 * Quotes an id with unusual characters, and replaces those outside of printable ASCII, because a caller can register almost any
 * text and a terminal interprets control characters.
 */
export const shown = (id: string): string =>
  /^[\w.:@|-]+$/.test(id) ? id : JSON.stringify(id).replace(/[^\x20-\x7e]/g, '?');

/**
 * Escapes the characters of a line that a terminal interprets or hides, as JSON does. The provider, the database and files can
 * contain such characters in any text. Every line that a command prints passes through this function.
 */
export const printable = (line: string): string =>
  line.replace(/\p{C}/gu, (found) =>
    Array.from(
      { length: found.length },
      (_, at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`,
    ).join(''),
  );

/** Prints the lines of a text. */
export const print = (text: string, stream: NodeJS.WritableStream = process.stdout) =>
  stream.write(`${text.split('\n').map(printable).join('\n')}\n`);

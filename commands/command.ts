import { existsSync } from 'node:fs';
import { TransientError } from '#lib/concurrency/retry';
import { InvalidEnvironmentError } from '#lib/env';
import { describeError } from '#lib/errors/describe-error';
import { closeDatabase } from '#lib/storage/database';

/** Error for an invalid option, argument or input file of a command. The message tells the operator how to correct it. */
export class UsageError extends Error {}

/** Exit code of a command: 0 for success, 1 for a failure, 2 for a UsageError, an error of parseArgs or an invalid variable. */
export type ExitCode = 0 | 1 | 2;

/** Returns true for a UsageError and for an error of parseArgs. */
const isUsageError = (error: unknown) =>
  error instanceof UsageError ||
  (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));

/**
 * Error classes whose messages safeMessage() always returns. This project uses these classes only for messages without secrets.
 * Subclasses are not included, because the database client, drivers and parsers throw subclasses whose messages may contain
 * secrets.
 */
const SAFE_ERRORS: readonly unknown[] = [Error, TransientError, InvalidEnvironmentError];

/**
 * Returns the message of a UsageError, an error of parseArgs, or an error whose class is in SAFE_ERRORS. The message of any
 * other error may contain a secret. For such an error, returns its name and its code, and adds the message only if
 * describeError() includes it.
 */
export function safeMessage(error: unknown): string {
  if (error instanceof Error && (SAFE_ERRORS.includes(error.constructor) || isUsageError(error)))
    return error.message;
  const { name, code = '', message = '' } = describeError(error);
  return [name, code, message].filter(Boolean).join(' ');
}

/**
 * Runs one of the operator commands in package.json and sets the exit code. If the command fails, prints the error message to
 * standard error, without the stack and without secrets. Also prints `usage` if isUsageError() returns true. Loads `.env.local`
 * as the application does. A variable that is already set keeps its value.
 */
export async function runCommand(usage: string, command: () => Promise<ExitCode>): Promise<void> {
  try {
    if (existsSync('.env.local')) process.loadEnvFile('.env.local');
    process.exitCode = await command();
  } catch (error) {
    const isInvalidCall = isUsageError(error) || error instanceof InvalidEnvironmentError;
    process.stderr.write(`${safeMessage(error)}\n${isUsageError(error) ? `\n${usage}\n` : ''}`);
    process.exitCode = isInvalidCall ? 2 : 1;
  } finally {
    await closeDatabase();
  }
}

/**
 * Returns an identity-provider user id in a form that is safe to print. A caller of POST /auth/v1/register can register almost
 * any text as such an id, and a terminal interprets control characters. JSON.stringify() therefore quotes an id that contains
 * unusual characters, and escapes most control characters. Any remaining character outside printable ASCII becomes `?`.
 */
export const shown = (id: string): string =>
  /^[\w.:@|-]+$/.test(id) ? id : JSON.stringify(id).replace(/[^\x20-\x7e]/g, '?');

/** Parses the value of the option `name`: a whole number of seconds with at most six digits. */
export function secondsOf(value: string, name: string): number {
  if (!/^\d{1,6}$/.test(value))
    throw new UsageError(`--${name} must be a whole number of seconds from 0 to 999999`);
  return Number(value);
}

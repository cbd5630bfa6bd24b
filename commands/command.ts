import { existsSync } from 'node:fs';
import { TransientError } from '#lib/concurrency/retry';
import { InvalidEnvironmentError } from '#lib/env';
import { describeError } from '#lib/errors/describe-error';
import { closeDatabase } from '#lib/storage/database';

/** The command was called in a way that it does not know; the message says how it is meant. */
export class UsageError extends Error {}

/** How a command ended: 0 is well, 1 is not, and 2 that it did not begin. */
export type ExitCode = 0 | 1 | 2;

/** What parseArgs says of a word that it does not know. */
const isUsage = (error: unknown) =>
  error instanceof UsageError ||
  (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));

const OURS: readonly unknown[] = [Error, TransientError, InvalidEnvironmentError];

/** Errors of ours are in words; of any other, the message may quote what nobody should read. */
export function inWords(error: unknown): string {
  if (error instanceof Error && (OURS.includes(error.constructor) || isUsage(error))) return error.message;
  const { name, code = '', message = '' } = describeError(error);
  return [name, code, message].filter(Boolean).join(' ');
}

/**
 * Runs an operator's command and sets the exit code. Every failure is a few lines on standard error, without a stack and
 * without a secret. The variables of `.env.local` count, as for the application; what is set already stays.
 */
export async function runCommand(usage: string, command: () => Promise<ExitCode>): Promise<void> {
  try {
    if (existsSync('.env.local')) process.loadEnvFile('.env.local');
    process.exitCode = await command();
  } catch (error) {
    const notBegun = isUsage(error) || error instanceof InvalidEnvironmentError;
    process.stderr.write(`${inWords(error)}\n${isUsage(error) ? `\n${usage}\n` : ''}`);
    process.exitCode = notBegun ? 2 : 1;
  } finally {
    await closeDatabase();
  }
}

/** An id as it may be shown on a terminal: whoever registered it chose every character. */
export const shown = (id: string): string =>
  /^[\w.:@|-]+$/.test(id) ? id : JSON.stringify(id).replace(/[^\x20-\x7e]/g, '?');

/** A whole number of seconds, of an option. */
export function secondsOf(option: string, name: string): number {
  if (!/^\d{1,6}$/.test(option)) throw new UsageError(`--${name} is a whole number of seconds`);
  return Number(option);
}

import type * as z from 'zod/mini';
import { parseEnvironmentSubset } from './env';
import { errorCode, InvalidEnvironmentError, TRUST_CA } from './errors';

/** Result of a check of `npm run doctor`. The texts never contain a secret. A warning or a failure has a remedy. */
export interface CheckResult {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'failure' | 'skipped';
  readonly message: string;
  readonly remedy?: string;
}

/** Ends a check with a result other than `ok`. */
class Outcome extends Error {
  constructor(readonly result: Omit<CheckResult, 'name'>) {
    super(result.message);
  }
}

/** Codes of Node.js for a certificate that it rejects (https://nodejs.org/api/tls.html#x509-certificate-error-codes). */
export const UNTRUSTED =
  /\b(?:\w*(?:CERT|CRL)_\w+|\w+_CERT|UNABLE_TO_\w+|INVALID_(?:CA|PURPOSE)|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH)\b/;

/** Ends a check that has found a mistake. The remedy is one line. If the message contains such a code, replaces the remedy. */
export function fail(message: string, remedy: string): never {
  throw new Outcome({ status: 'failure', message, remedy: UNTRUSTED.test(message) ? TRUST_CA : remedy });
}

export function warn(message: string, remedy: string): never {
  throw new Outcome({ status: 'warning', message, remedy });
}

/** Ends a check that cannot try anything, for example because there is no connection. */
export function skip(message: string): never {
  throw new Outcome({ status: 'skipped', message });
}

/** Runs a check, which returns the message of the result `ok`. Does not throw. */
export async function check(name: string, run: () => string | Promise<string>): Promise<CheckResult> {
  try {
    return { name, status: 'ok', message: await run() };
  } catch (error) {
    if (error instanceof Outcome) return { name, ...error.result };
    const message = `the check did not complete (${errorCode(error)})`;
    return { name, status: 'failure', message, remedy: 'Run the doctor again, or report a bug' };
  }
}

/** Returns variables that a check needs. Skips the check if one is invalid, because the check of all variables reports the problem. */
export function validVariables<T>(schema: z.ZodMiniType<T>): T {
  try {
    return parseEnvironmentSubset(schema);
  } catch (error) {
    if (!(error instanceof InvalidEnvironmentError)) throw error;
    skip(`${error.problems[0]?.split(' ')[0]} is invalid`);
  }
}

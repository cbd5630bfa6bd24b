import { withTimeout } from '../concurrency/with-timeout';
import { describeError } from '../errors/describe-error';

/** Result of a check of `npm run doctor`. The texts never contain a secret. The remedy is one line. */
export type CheckResult =
  | { readonly status: 'ok' | 'skipped'; readonly message: string }
  | { readonly status: 'warning' | 'failure'; readonly message: string; readonly remedy: string };

export type NamedCheck = CheckResult & { readonly name: string };

export const ok = (message: string): CheckResult => ({ status: 'ok', message });
export const skipped = (message: string): CheckResult => ({ status: 'skipped', message });
export const warning = (message: string, remedy: string): CheckResult => ({
  status: 'warning',
  message,
  remedy,
});
export const failure = (message: string, remedy: string): CheckResult => ({
  status: 'failure',
  message,
  remedy,
});

/** Default timeout of a whole check, including all its network calls. */
export const TIMEOUT_MS = 5_000;

/**
 * Time limit that allows `retry` at most three attempts. The delays between them are 0.5 s and 1 s. A third delay of 2 s would
 * end after the limit of 3 s.
 */
export const THREE_ATTEMPTS = { seconds: 3 };

/**
 * Returns the code of an error. If the error has no code, returns the code of its cause. If the cause has no code either,
 * returns the message of the error. A message may contain a secret, so describeError() omits some messages. If the message is
 * omitted, returns the name of the error. For an AggregateError, describes the first of its errors.
 */
export function errorCode(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return errorCode(error.errors[0]);
  const { name, code, message, cause } = describeError(error);
  return code ?? cause?.code ?? message ?? name;
}

export type Settled<T> = { readonly value: T } | { readonly failed: CheckResult };

/** Returns the value of `work`. If `work` fails or times out, returns the result of `explain(error)`. Does not throw. */
export async function settle<T>(
  work: () => Promise<T>,
  explain: (error: unknown) => CheckResult,
  milliseconds = TIMEOUT_MS,
): Promise<Settled<T>> {
  try {
    return { value: await withTimeout(milliseconds, work()) };
  } catch (error) {
    return { failed: explain(error) };
  }
}

/** Runs one check. Returns a failure if `run` throws or exceeds the timeout. Does not throw. */
export async function check(
  name: string,
  run: () => CheckResult | Promise<CheckResult>,
  milliseconds = TIMEOUT_MS,
): Promise<NamedCheck> {
  const explain = (error: unknown) =>
    failure(
      `the check did not complete (${errorCode(error)})`,
      'Run the doctor again. If the check fails again, report a bug',
    );
  const settled = await settle(async () => run(), explain, milliseconds);
  const result: CheckResult = 'value' in settled ? settled.value : settled.failed;
  return { name, ...result };
}

/** Runs `work` `rounds` times, one run after the other. Returns the median duration of a run in whole milliseconds. */
export async function medianDuration(rounds: number, work: () => Promise<unknown>): Promise<number> {
  const durations: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startedAt = performance.now();
    await work();
    durations.push(performance.now() - startedAt);
  }
  return Math.round(durations.toSorted((one, other) => one - other)[Math.floor(rounds / 2)] ?? 0);
}

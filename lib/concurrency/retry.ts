import { setTimeout as sleep } from 'node:timers/promises';

/** An error after which a later attempt can succeed. Operators see the message, so it must not contain request data. */
export class TransientError extends Error {
  constructor(
    message: string,
    /** Pause that the server requested, for example in a `Retry-After` header. */
    readonly retryAfterSeconds?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'TransientError';
  }
}

/** Limits and callbacks of `retry`. */
export interface RetryOptions {
  /**
   * Time limit for retries. `retry` gives up if its next backoff delay would end after the limit. Pauses that the server
   * requested do not count toward the limit.
   */
  readonly seconds: number;
  /** Called before each delay with the message of the error and the length of the delay. */
  readonly onWait?: (reason: string, seconds: number) => void;
  /** Waits. Default: a timer of Node.js. */
  readonly sleep?: (milliseconds: number) => Promise<unknown>;
  /** Returns milliseconds since an arbitrary fixed time. */
  readonly now?: () => number;
}

const FIRST_DELAY_SECONDS = 0.5;
const MAX_DELAY_SECONDS = 15;
/** Maximum number of pauses that a server may request during one call of `retry`. */
const MAX_PAUSES = 60;
/** Maximum length of each of these pauses. */
const MAX_PAUSE_SECONDS = 300;

/**
 * Calls `work` and retries it when it throws a TransientError. If the error has `retryAfterSeconds`, the delay has that length.
 * Otherwise, the delay starts at 0.5 s and doubles up to 15 s.
 *
 * Immediately rethrows an error that is not a TransientError. Throws the last TransientError in these cases:
 * - The error has no `retryAfterSeconds`, and the next delay would end after the time limit `seconds`. Pauses that the server
 *   requested do not count toward this limit.
 * - The server requests a pause of more than 300 s, or more than 60 pauses.
 */
export async function retry<T>(
  { seconds, onWait, sleep: wait = sleep, now = () => performance.now() }: RetryOptions,
  work: () => Promise<T>,
): Promise<T> {
  const startedAt = now();
  let backoff = FIRST_DELAY_SECONDS;
  let pauses = 0;
  let pausedSeconds = 0;

  function requestedDelay(pause: number): number | undefined {
    if (pauses === MAX_PAUSES || pause > MAX_PAUSE_SECONDS) return undefined;
    pauses += 1;
    pausedSeconds += pause;
    return pause;
  }

  function backoffDelay(): number | undefined {
    const delay = backoff;
    const failingSeconds = (now() - startedAt) / 1000 - pausedSeconds;
    if (failingSeconds + delay > seconds) return undefined;
    backoff = Math.min(delay * 2, MAX_DELAY_SECONDS);
    return delay;
  }

  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof TransientError)) throw error;
      const pause = error.retryAfterSeconds;
      const delay = pause === undefined ? backoffDelay() : requestedDelay(pause);
      if (delay === undefined) throw error;
      onWait?.(error.message, delay);
      await wait(delay * 1000);
    }
  }
}

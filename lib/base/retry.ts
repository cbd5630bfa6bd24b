import { setTimeout as sleep } from 'node:timers/promises';
import { retryLostRace } from '../core/async';
import { TransientError, withoutValues } from './errors';
import { isLostRace } from './sql-state';

export interface RetryOptions {
  /** Maximum total length of the pauses between the attempts. */
  readonly seconds: number;
  /** Called before each pause with the message of the error and the length of the pause. */
  readonly onWait?: (reason: string, seconds: number) => void;
  /** Waits. Default: a timer of Node.js. */
  readonly sleep?: (milliseconds: number) => Promise<unknown>;
}

const FIRST_PAUSE_SECONDS = 0.5;
const MAX_PAUSE_SECONDS = 15;

/**
 * Calls `work` and repeats the call when it throws a TransientError, also that of the database (`withoutValues`). The pause
 * starts at 0.5 s and doubles up to 15 s, or is the one that the server requested, if that is longer. Throws the last error if
 * the next pause would exceed the limit, and any other error immediately.
 */
export async function retry<T>(
  { seconds, onWait, sleep: wait = sleep }: RetryOptions,
  work: () => Promise<T>,
): Promise<T> {
  let waited = 0;
  for (let backoff = FIRST_PAUSE_SECONDS; ; backoff = Math.min(backoff * 2, MAX_PAUSE_SECONDS)) {
    try {
      return await work();
    } catch (cause) {
      const error = withoutValues(cause);
      if (!(error instanceof TransientError)) throw error;
      const pause = Math.max(error.retryAfterSeconds ?? 0, backoff);
      waited += pause;
      if (waited > seconds) throw error;
      onWait?.(error.message, pause);
      await wait(pause * 1000);
    }
  }
}

/** Calls `work` and repeats the call as `retryLostRace` does. */
export const retryOnConflict = <T>(work: () => Promise<T>): Promise<T> => retryLostRace(isLostRace, work);

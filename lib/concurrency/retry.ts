import { setTimeout as sleep } from 'node:timers/promises';

/** A fault that may pass by itself. Its message is for a person, and quotes nothing. */
export class TransientError extends Error {
  constructor(
    message: string,
    /** So long the other side asks to be left alone. */
    readonly retryAfterSeconds?: number,
  ) {
    super(message);
    this.name = 'TransientError';
  }
}

/** How long somebody waits for parts that do not answer. */
export interface RetryOptions {
  readonly seconds: number;
  /** Told of every wait. */
  readonly onWait?: (why: string, seconds: number) => void;
  readonly sleep?: (milliseconds: number) => Promise<unknown>;
  /** Milliseconds since any fixed time. */
  readonly now?: () => number;
}

const FIRST_WAIT_SECONDS = 0.5;
const LONGEST_WAIT_SECONDS = 15;
/** Of one call: a part that asks so often to be left alone will not answer. */
const MAX_REQUESTED_WAITS = 60;
const MAX_REQUESTED_SECONDS = 300;

/**
 * What the work comes to, which is begun again over a TransientError: after as long as the other side asks for, or after waits
 * that double. Ends with the last fault once the work has failed for as long as `patience` says, in which requested waits do
 * not count; their number and length have bounds of their own. Any other error is thrown at once.
 */
export async function retry<T>(
  { seconds, onWait, sleep: wait = sleep, now = () => performance.now() }: RetryOptions,
  work: () => Promise<T>,
): Promise<T> {
  let givenUpAt = now() + seconds * 1000;
  let nextWait = FIRST_WAIT_SECONDS;
  for (let requested = 0; ; ) {
    try {
      return await work();
    } catch (fault) {
      if (!(fault instanceof TransientError)) throw fault;
      const { retryAfterSeconds } = fault;
      if (retryAfterSeconds === undefined) {
        if (now() + nextWait * 1000 > givenUpAt) throw fault;
      } else {
        requested += 1;
        if (requested > MAX_REQUESTED_WAITS || retryAfterSeconds > MAX_REQUESTED_SECONDS) throw fault;
        givenUpAt += retryAfterSeconds * 1000;
      }
      const pause = retryAfterSeconds ?? nextWait;
      if (retryAfterSeconds === undefined) nextWait = Math.min(nextWait * 2, LONGEST_WAIT_SECONDS);
      onWait?.(fault.message, pause);
      await wait(pause * 1000);
    }
  }
}

export const DAY_SECONDS = 24 * 60 * 60;

/** Time and timers of the emulator. A test can replace them to run a day of webhook deliveries in milliseconds. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `callback` once after the delay. The returned function cancels the timer. */
  after(milliseconds: number, callback: () => void): () => void;
}

/** Returns a function that returns ever later times, in milliseconds with microseconds after the decimal point. */
export function creationTimes(clock: Clock): () => number {
  let microseconds = 0;
  return () => {
    microseconds = Math.max(clock.now() * 1000, microseconds) + 1;
    return microseconds / 1000;
  };
}

/** Maximum delay of a Node.js timer in milliseconds. A timer with a longer delay would fire immediately. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** The system clock. Its timers do not keep the process alive. Delays longer than LONGEST_TIMER are cut to LONGEST_TIMER. */
export const systemClock: Clock = {
  now: Date.now,
  after(milliseconds, callback) {
    const timer = setTimeout(callback, Math.min(milliseconds, LONGEST_TIMER));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

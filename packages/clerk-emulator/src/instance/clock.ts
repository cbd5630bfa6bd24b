/** The time and the timers of the stand-in, so that a test can play a day of deliveries in a moment. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back once, `milliseconds` from now; the returned function cancels it. */
  after(milliseconds: number, callback: () => void): () => void;
}

/**
 * Returns a function that returns creation times in milliseconds, with microseconds as the fraction. Each time is later
 * than the one before. No time is a whole millisecond, like nearly all times of a real column with microseconds.
 */
export function creationTimes(clock: Clock): () => number {
  let microseconds = 0;
  return () => {
    microseconds = Math.max(clock.now() * 1000, microseconds) + 1;
    return microseconds / 1000;
  };
}

/** The largest delay that a Node timer keeps; a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** The machine's clock. Its timers never keep the process alive. */
export const systemClock: Clock = {
  now: Date.now,
  after(milliseconds, callback) {
    const timer = setTimeout(callback, Math.min(milliseconds, LONGEST_TIMER));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

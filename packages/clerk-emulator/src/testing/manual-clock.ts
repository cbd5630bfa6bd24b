import type { Clock } from '../instance/clock';

/** A clock whose timers fire only when a test advances it. */
export interface ManualClock extends Clock {
  /** Advances to the earliest timer that is at least `atLeast` ms away, runs only this one, and returns the elapsed time. */
  advance(atLeast?: number): number;
}

/** Returns a clock that starts at the current time and moves only when it is advanced. */
export function manualClock(): ManualClock {
  let time = Date.now();
  const pending = new Map<() => void, number>();
  return {
    now: () => time,
    after(milliseconds, callback) {
      pending.set(callback, time + milliseconds);
      return () => pending.delete(callback);
    },
    advance(atLeast = 0) {
      const start = time;
      const [next] = [...pending]
        .filter(([, at]) => at - start >= atLeast)
        .sort(([, one], [, other]) => one - other);
      if (next === undefined) throw new Error(`No timer is set for ${atLeast} ms from now or later.`);
      const [callback, at] = next;
      pending.delete(callback);
      time = at;
      callback();
      return at - start;
    },
  };
}

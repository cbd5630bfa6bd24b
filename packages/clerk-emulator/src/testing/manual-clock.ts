import type { Clock } from '../instance/clock';

/** A clock whose timers fire only when a test advances it. */
export interface ManualClock extends Clock {
  /** Advances the time to the next timer that is at least `atLeast` ms away, runs it and returns the elapsed milliseconds. */
  advance(atLeast?: number): number;
}

/** Returns a clock that starts at the current time and moves only when it is advanced. */
export function manualClock(): ManualClock {
  let time = Date.now();
  return timers(
    () => time,
    (at) => {
      time = at;
    },
  );
}

/** Returns a manual clock for another source of time. `now` reads that time, and `moveTo` sets it. */
export function timers(now: () => number, moveTo: (at: number) => void): ManualClock {
  const pending = new Map<() => void, number>();
  return {
    now,
    after(milliseconds, callback) {
      pending.set(callback, now() + milliseconds);
      return () => pending.delete(callback);
    },
    advance(atLeast = 0) {
      const start = now();
      const [next] = [...pending]
        .filter(([, at]) => at - start >= atLeast)
        .sort(([, one], [, other]) => one - other);
      if (next === undefined) throw new Error('No timer is set.');
      const [callback, at] = next;
      pending.delete(callback);
      moveTo(at);
      callback();
      return at - start;
    },
  };
}

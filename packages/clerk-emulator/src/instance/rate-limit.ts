import type { Clock } from './clock';

/** So many requests in so many seconds. */
export interface Rate {
  readonly requests: number;
  readonly seconds: number;
}

/** The provider's limit on its Backend API, off until it is switched on: a developer's scripts need no patience. */
export interface RateLimit {
  /** From now on; undefined switches it off. */
  set(rate: Rate | undefined): void;
  /** Counts a request. Returns the whole seconds that it must wait, or undefined if it may pass. */
  take(): number | undefined;
}

/** A limit by fixed windows, the first of which begins with the first request. */
export function rateLimit(clock: Clock): RateLimit {
  let rate: Rate | undefined;
  let windowEnds = 0;
  let taken = 0;
  return {
    set(next) {
      rate = next;
      windowEnds = 0;
    },
    take() {
      if (rate === undefined) return undefined;
      const now = clock.now();
      if (now >= windowEnds) {
        windowEnds = now + rate.seconds * 1000;
        taken = 0;
      }
      taken += 1;
      return taken > rate.requests ? Math.ceil((windowEnds - now) / 1000) : undefined;
    },
  };
}

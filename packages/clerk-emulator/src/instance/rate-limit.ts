import type { Clock } from './clock';

/** Maximum number of requests in a period of `seconds`. */
export interface Rate {
  readonly requests: number;
  readonly seconds: number;
}

/** Rate limit of `/v1/users` in the Backend API. Initially there is no limit, so that scripts run at full speed. */
export interface RateLimit {
  /** Sets the limit. Undefined removes it. */
  set(rate: Rate | undefined): void;
  /**
   * Counts a request. Returns undefined if the request is within the limit. Otherwise, returns the number of seconds to
   * wait, rounded up.
   */
  take(): number | undefined;
}

/** Counts requests in windows of `seconds`. A window starts with the first request after the end of the previous window. */
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

const GOLDEN_RATIO = (1 + Math.sqrt(5)) / 2;

/**
 * Returns the creation times of `count` users. On average, `perSecond` users are created in each second. The times are
 * milliseconds since 1970 with three decimals (microseconds). The gaps between the times have an exponential distribution, as
 * if the users arrived independently of each other. Each gap is computed from the fractional part of a multiple of the golden
 * ratio. These fractional parts are evenly spread between 0 and 1. They replace random numbers, so that every run gets the
 * same times.
 */
export function arrivalTimes(count: number, perSecond: number, since = Date.parse('2026-01-01')): number[] {
  let time = since;
  return Array.from({ length: count }, (_, index) => {
    const evenlySpread = (index * GOLDEN_RATIO) % 1;
    time += (-Math.log(1 - evenlySpread) * 1000) / perSecond;
    return Math.round(time * 1000) / 1000;
  });
}

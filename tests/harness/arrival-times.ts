const GOLDEN_RATIO = (1 + Math.sqrt(5)) / 2;

/**
 * Returns creation times of users who arrive independently of each other, in milliseconds with microseconds after the
 * decimal point. The gaps have an exponential distribution. They follow a golden-ratio sequence instead of random
 * numbers, so every run gets the same times.
 */
export function arrivalTimes(count: number, perSecond: number, since = Date.parse('2026-01-01')): number[] {
  let time = since;
  return Array.from({ length: count }, (_, index) => {
    const share = (index * GOLDEN_RATIO) % 1;
    time += (-Math.log(1 - share) * 1000) / perSecond;
    return Math.round(time * 1000) / 1000;
  });
}

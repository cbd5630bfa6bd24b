/** Size of one request and its cost (CPU time). */
export interface Point {
  readonly bytes: number;
  readonly milliseconds: number;
  /** Cost of the reference request in milliseconds. `milliseconds` is compared with this cost. */
  readonly reference: number;
}

/** Limits for the cost of a request, compared with the cost of a reference request. */
export interface CostLimits {
  /** Maximum cost as a multiple of the reference. Undefined: there is no such limit. */
  readonly factor?: number;
  /** Maximum cost in milliseconds, independent of the reference. Undefined: there is no such limit. */
  readonly ceiling?: number;
  /** Cost above the reference, in milliseconds. A request with a smaller additional cost exceeds no limit. */
  readonly negligible: number;
}

/** Returns limits. Limits in milliseconds may be multiples of `page`, the cost of the home page on the same machine. */
export type LimitsFor = (page: number) => CostLimits;

/**
 * Returns the default limits. The reference is the request before one of its parts grows. An additional cost below the cost of
 * two pages is negligible, because an attacker can request pages as well.
 */
export const ordinaryLimits: LimitsFor = (page) => ({ factor: 5, ceiling: 10 * page, negligible: 2 * page });

/** Smallest measurable cost above the reference, in milliseconds. Noise dominates smaller costs. */
const FIT_FROM_MS = 1;
/**
 * Maximum number of points in a fit. More points would include small sizes, at which the linear part of a quadratic cost
 * dominates. The fitted exponent would then be too low.
 */
const FITTED_POINTS = 3;
/**
 * Maximum acceptable exponent of growth. Linear growth has the exponent 1. Caches, garbage collection and noise can increase
 * the fitted value by up to 0.2.
 */
const MAX_EXPONENT = 1.3;

const extra = ({ milliseconds, reference }: Point) => milliseconds - reference;

/** Returns the point whose cost above its reference is the highest. */
export function peak<P extends Point>(points: readonly P[]): P | undefined {
  return points.toSorted((one, other) => extra(other) - extra(one))[0];
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * Returns the exponent of growth: the least-squares slope of log(cost above the reference) over log(size). The points
 * must be sorted by size.
 *
 * The fit uses the point with the highest cost and at most two points of the next smaller sizes. It excludes the larger sizes.
 * Their cost is lower because the server rejects such requests early.
 *
 * Some points may have a cost that is too small to measure. The fit excludes all points before the last of these points. If the
 * fit includes that last point, it raises the cost of the point to the smallest measurable cost. Raising the cost of the first
 * point of a fit can only reduce the slope, so the result is a lower bound. Returns undefined if fewer than two points remain.
 */
export function growthExponent(points: readonly Point[]): number | undefined {
  const highest = peak(points);
  const rising = points.filter(({ bytes }) => highest !== undefined && bytes <= highest.bytes);
  const unmeasurable = rising.findLastIndex((point) => extra(point) < FIT_FROM_MS);
  const fitted = rising.slice(Math.max(0, unmeasurable, rising.length - FITTED_POINTS));
  if (fitted.length < 2) return undefined;
  const xs = fitted.map(({ bytes }) => Math.log(bytes));
  const ys = fitted.map((point) => Math.log(Math.max(extra(point), FIT_FROM_MS)));
  const [meanX, meanY] = [mean(xs), mean(ys)];
  const covariance = xs.reduce((sum, x, index) => sum + (x - meanX) * ((ys[index] ?? 0) - meanY), 0);
  const variance = xs.reduce((sum, x) => sum + (x - meanX) ** 2, 0);
  return covariance / variance;
}

/** Returns the limits that a series of growing requests exceeds. Returns an empty list if the costs are acceptable. */
export function brokenLimits(points: readonly Point[], limits: CostLimits): string[] {
  const { factor, ceiling, negligible } = limits;
  const highest = peak(points);
  if (!highest || extra(highest) < negligible) return [];
  const exponent = growthExponent(points) ?? 0;
  return [
    ...(factor !== undefined && highest.milliseconds > factor * highest.reference
      ? [`over ${factor} times`]
      : []),
    ...(ceiling !== undefined && highest.milliseconds > ceiling ? [`over ${Math.round(ceiling)} ms`] : []),
    ...(exponent > MAX_EXPONENT ? ['superlinear'] : []),
  ];
}

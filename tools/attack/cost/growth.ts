/** Cost of one request of a size. */
export interface Point {
  readonly bytes: number;
  readonly milliseconds: number;
  /** Cost of the request that it is compared with. */
  readonly reference: number;
}

/** Limits of the cost of a request. */
export interface CostLimits {
  /** As a multiple of its reference. Absent: no such limit. */
  readonly factor?: number;
  /** In milliseconds, whatever the reference costs. Absent: no such limit. */
  readonly ceiling?: number;
  /** In milliseconds above its reference: a request that costs less is never a finding. */
  readonly negligible: number;
}

/**
 * Limits of a dimension that is compared with the ordinary request of its address. The negligible cost is about that of an
 * ordinary page, which an attacker can request as well.
 */
export const ORDINARY_LIMITS: CostLimits = { factor: 5, ceiling: 60, negligible: 12 };

/** Costs below this do not contribute to the fit, because noise dominates them. */
const FIT_FROM_MS = 1;
/** A fit over more points would include the small sizes, where the linear part of a quadratic cost is the larger one. */
const FITTED_POINTS = 3;
/** Linear growth is 1. Caches, garbage collection and noise move a linear fit up to about 0.2. */
const MAX_EXPONENT = 1.3;

const extra = ({ milliseconds, reference }: Point) => milliseconds - reference;

/** Returns the point whose cost above its reference is the highest. */
export function peak<P extends Point>(points: readonly P[]): P | undefined {
  return points.toSorted((one, other) => extra(other) - extra(one))[0];
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * Returns the exponent of growth: the least-squares slope of the logarithm of the cost above the reference over the
 * logarithm of the size. The fit includes the peak and the sizes right below it. Sizes beyond the peak are left out,
 * because there the server rejects the request early. A cost too small to measure counts as the smallest measurable
 * cost, and only the largest such size is used: the exponent is then a lower bound. Undefined: there is nothing to fit.
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

/** Returns which limits a series of growing requests breaks. None: it is acceptable. */
export function brokenLimits(points: readonly Point[], limits: CostLimits): string[] {
  const { factor, ceiling, negligible } = limits;
  const highest = peak(points);
  if (!highest || extra(highest) < negligible) return [];
  const exponent = growthExponent(points) ?? 0;
  return [
    ...(factor !== undefined && highest.milliseconds > factor * highest.reference
      ? [`over ${factor} times`]
      : []),
    ...(ceiling !== undefined && highest.milliseconds > ceiling ? [`over ${ceiling} ms`] : []),
    ...(exponent > MAX_EXPONENT ? ['superlinear'] : []),
  ];
}

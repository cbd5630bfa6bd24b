import { expect, test } from 'vitest';
import {
  brokenLimits,
  type CostLimits,
  growthExponent,
  ordinaryLimits,
  type Point,
  peak,
} from '../../tools/attack/cost/growth';

// The search for expensive requests measures how much CPU time the server needs for requests of growing size. The growth
// exponent is 1 if the cost grows linearly with the size, and 2 if it grows quadratically.
const ORDINARY_MS = 5;
/**
 * Limits in milliseconds are multiples of the cost of the home page. If the home page costs 6 ms, an additional cost below
 * 12 ms is negligible, and a total cost above 60 ms is too high.
 */
const LIMITS = ordinaryLimits(6);

/**
 * Returns measurements of requests whose size doubles from one measurement to the next. Each measurement has the cost of an
 * ordinary request (`reference`) and the cost of the enlarged request (`milliseconds`). The difference is `extra`. All costs
 * are in milliseconds.
 */
const series = (extra: (bytes: number) => number, reference = ORDINARY_MS): Point[] =>
  [125, 250, 500, 1_000, 2_000, 4_000, 8_000].map((bytes) => ({
    bytes,
    milliseconds: reference + extra(bytes),
    reference,
  }));

const linear = (milliseconds: number) => (bytes: number) => (milliseconds * bytes) / 8_000;
const quadratic = (milliseconds: number) => (bytes: number) => milliseconds * (bytes / 8_000) ** 2;

test.each([
  { name: 'linear', extra: linear(40), exponent: 1 },
  { name: 'quadratic', extra: quadratic(1_500), exponent: 2 },
  { name: 'cubic', extra: (bytes: number) => 900 * (bytes / 8_000) ** 3, exponent: 3 },
])('growthExponent() returns $exponent for $name growth', ({ extra, exponent }) => {
  expect(growthExponent(series(extra))).toBeCloseTo(exponent, 1);
});

test('The linear part of a quadratic cost does not hide the quadratic growth', () => {
  const mixed = (bytes: number) => linear(20)(bytes) + quadratic(180)(bytes);
  expect(growthExponent(series(mixed))).toBeGreaterThan(1.5);
});

test('Sizes that the server rejects early do not lower the growth exponent', () => {
  const limited = (bytes: number) => (bytes > 2_000 ? 0 : quadratic(1_600)(bytes));
  expect(peak(series(limited))).toMatchObject({ bytes: 2_000, milliseconds: 105 });
  expect(growthExponent(series(limited))).toBeCloseTo(2, 1);
});

test('growthExponent() treats a cost that is too small to measure as 1 ms, the smallest measurable cost', () => {
  const sudden = (bytes: number) => (bytes === 8_000 ? 40 : 0);
  expect(growthExponent(series(sudden))).toBeCloseTo(Math.log2(40), 1);
});

test.each([{ points: [] }, { points: series(() => 0) }, { points: series(linear(40)).slice(-1) }])(
  'growthExponent() returns undefined if no growth can be derived from $points.length measurements',
  ({ points }) => {
    expect(growthExponent(points)).toBeUndefined();
  },
);

test.each([
  { name: 'a constant cost', points: series(() => 0), limits: LIMITS },
  { name: 'a linear cost below 5 times the reference', points: series(linear(19)), limits: LIMITS },
  { name: 'a negligible quadratic cost', points: series(quadratic(11), 1), limits: LIMITS },
  {
    name: 'a high linear cost if the limits have no maximum in milliseconds',
    points: series(linear(100), 30),
    limits: { factor: 5, negligible: 12 },
  },
  {
    name: 'a high linear cost if the limits have no maximum at all',
    points: series(linear(100)),
    limits: { negligible: 12 },
  },
])('brokenLimits() accepts $name', ({ points, limits }) => {
  expect(brokenLimits(points, limits)).toEqual([]);
});

/** Limits for requests whose signature the service checks. */
const signature: CostLimits = { factor: 1.6, negligible: 4 };

test.each([
  {
    name: 'A linear cost of 25 ms above a reference of 5 ms',
    points: series(linear(25)),
    broken: ['over 5 times'],
  },
  { name: 'A linear cost of 70 ms in total', points: series(linear(50), 20), broken: ['over 60 ms'] },
  {
    name: 'A quadratic cost of 20 ms above a reference of 10 ms',
    points: series(quadratic(20), 10),
    broken: ['superlinear'],
  },
  {
    name: 'A quadratic cost of a second',
    points: series(quadratic(1_000)),
    broken: ['over 5 times', 'over 60 ms', 'superlinear'],
  },
])('$name breaks the limits: $broken', ({ points, broken }) => {
  expect(brokenLimits(points, LIMITS)).toEqual(broken);
});

test('If the maximum is 1.6 times the reference cost, brokenLimits() reports a cost of 2 times the reference and accepts 1.5 times the reference', () => {
  expect(brokenLimits(series(linear(10), 10), signature)).toEqual(['over 1.6 times']);
  expect(brokenLimits(series(linear(5), 10), signature)).toEqual([]);
});

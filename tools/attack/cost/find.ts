import { type CostAddress, ordinaryRequest } from './addresses';
import { DIMENSIONS, type Dimension, sizesOf } from './dimensions';
import { brokenLimits, growthExponent, ordinaryLimits, type Point, peak } from './growth';
import { type Effort, measureCost, type Server } from './measure';
import type { CostRequest } from './request';

interface MeasuredPoint extends Point {
  /** Status of the response. */
  readonly status: number;
}

/** A dimension (a growing part of a request, such as its headers) whose cost exceeds a limit at one address. */
export interface ExcessiveCost {
  /** Method and path. */
  readonly address: string;
  readonly dimension: string;
  /**
   * The size with the highest cost above the reference. The reference is the cost of the control request if the dimension has
   * one (dimensions.ts). Otherwise, it is the cost of the ordinary (small) request, or of the GET request if the address
   * rejects the method with 405.
   */
  readonly worst: MeasuredPoint;
  /** 1 for linear growth, 2 for quadratic growth. */
  readonly exponent: number | undefined;
  /** The exceeded limits. */
  readonly broken: readonly string[];
}

/** A request to an address, and the dimensions in which this request grows. */
export interface Target {
  readonly address: string;
  readonly ordinary: CostRequest;
  /** GET request to the same address. It is the reference if the address rejects the method of `ordinary` with 405. */
  readonly get: CostRequest;
  readonly dimensions: readonly Dimension[];
}

const METHODS = ['GET', 'POST'] as const;
const METHOD_NOT_ALLOWED = 405;

/** Returns the targets. `only` is matched against method, path and dimension, separated by spaces. */
export function costTargets(addresses: readonly CostAddress[], token: string, only: RegExp): Target[] {
  return addresses
    .flatMap((each) =>
      METHODS.map((method) => {
        const address = `${method} ${each.path}`;
        const ordinary = ordinaryRequest(each, method, token);
        const dimensions = DIMENSIONS.filter(
          (dimension) => dimension.appliesTo(ordinary) && only.test(`${address} ${dimension.name}`),
        );
        return { address, ordinary, get: ordinaryRequest(each, 'GET', token), dimensions };
      }),
    )
    .filter(({ dimensions }) => dimensions.length > 0);
}

/**
 * Effort for the first requests to an address. Their cost is discarded, because requests cost several times as much before V8
 * compiles the code.
 */
const WARM_UP: Effort = { requests: 60, milliseconds: 600 };
const ORDINARY: Effort = { requests: 8, milliseconds: 100 };
const ORDINARY_ROUNDS = 3;
const SCREENING: Effort = { requests: 3, milliseconds: 100 };
const CONFIRMATION: Effort = { requests: 10, milliseconds: 150 };
const CONFIRMATIONS = 3;
/**
 * If the screening (the first, short measurement) of a dimension finds a cost above this value, the dimension is not measured
 * again. Noise cannot cause such a cost, and a second measurement would take long.
 */
const BEYOND_DOUBT_MS = 240;

/** Measures the cost of requests that grow in one dimension. */
async function measureSeries(
  server: Server,
  { ordinary }: Target,
  dimension: Dimension,
  sizes: readonly number[],
  effort: Effort,
  ordinaryMs: number,
): Promise<MeasuredPoint[]> {
  const points: MeasuredPoint[] = [];
  for (const bytes of sizes) {
    const { milliseconds, status } = await measureCost(server, dimension.grow(ordinary, bytes), effort);
    const control = dimension.control?.grow(ordinary, bytes);
    const reference = control ? (await measureCost(server, control, effort)).milliseconds : ordinaryMs;
    points.push({ bytes, milliseconds, reference, status });
  }
  return points;
}

/** Returns the lowest measured costs of each size, because other processes on the machine can only increase a cost. */
function lowest(rounds: readonly (readonly MeasuredPoint[])[]): MeasuredPoint[] {
  const [first = []] = rounds;
  return first.map((point, index) => {
    const same = rounds.flatMap((round) => round[index] ?? []);
    return {
      ...point,
      milliseconds: Math.min(...same.map(({ milliseconds }) => milliseconds)),
      reference: Math.min(...same.map(({ reference }) => reference)),
    };
  });
}

/** Measures the ordinary request of a target, or its GET request if the address rejects the method with 405. */
async function measureReference(
  server: Server,
  { ordinary, get }: Pick<Target, 'ordinary' | 'get'>,
  effort: Effort,
): Promise<number> {
  const { milliseconds, status } = await measureCost(server, ordinary, effort);
  return status === METHOD_NOT_ALLOWED ? (await measureCost(server, get, effort)).milliseconds : milliseconds;
}

/** Repeats the measurement of a dimension that exceeded a limit, at more sizes and with more requests. */
async function confirm(server: Server, target: Target, dimension: Dimension): Promise<MeasuredPoint[]> {
  const rounds: MeasuredPoint[][] = [];
  for (let round = 0; round < CONFIRMATIONS; round += 1) {
    const milliseconds = await measureReference(server, target, CONFIRMATION);
    const sizes = sizesOf(dimension, 2, 8);
    rounds.push(await measureSeries(server, target, dimension, sizes, CONFIRMATION, milliseconds));
  }
  return lowest(rounds);
}

async function findIn(
  server: Server,
  target: Target,
  dimension: Dimension,
  ordinaryMs: number,
  { quick, page }: FindOptions,
): Promise<ExcessiveCost | undefined> {
  const sizes = sizesOf(dimension, quick ? 8 : 4, quick ? 2 : 5);
  const screened = await measureSeries(server, target, dimension, sizes, SCREENING, ordinaryMs);
  const limits = (dimension.control?.limits ?? ordinaryLimits)(page);
  if (brokenLimits(screened, limits).length === 0) return undefined;
  const beyondDoubt = (peak(screened)?.milliseconds ?? 0) > BEYOND_DOUBT_MS;
  const points = beyondDoubt ? screened : await confirm(server, target, dimension);
  const broken = brokenLimits(points, limits);
  const worst = peak(points);
  if (!worst || broken.length === 0) return undefined;
  const exponent = growthExponent(points);
  return { address: target.address, dimension: dimension.name, worst, exponent, broken };
}

/**
 * Measures the ordinary (small) request several times and resolves with the lowest cost in milliseconds. If the address rejects
 * the method with 405, measures the GET request instead. The cost is the reference of a dimension, unless the dimension has a
 * control request (dimensions.ts). The lowest cost is used, because noise increases a cost, and a reference that is too high
 * would hide findings.
 */
export async function ordinaryCost(
  server: Server,
  target: Pick<Target, 'ordinary' | 'get'>,
): Promise<number> {
  await measureCost(server, target.ordinary, WARM_UP);
  const costs: number[] = [];
  while (costs.length < ORDINARY_ROUNDS) costs.push(await measureReference(server, target, ORDINARY));
  return Math.min(...costs);
}

interface FindOptions {
  /** If true, the screening (the first, short measurement) of each dimension uses two sizes instead of five. */
  readonly quick: boolean;
  /** Cost of the home page in milliseconds. */
  readonly page: number;
}

/** Measures every dimension of every target and resolves with the dimensions that exceed a limit. */
export async function findCosts(
  server: Server,
  targets: readonly Target[],
  options: FindOptions,
  onTarget: (target: Target, ordinaryMs: number) => void,
): Promise<ExcessiveCost[]> {
  const findings: ExcessiveCost[] = [];
  for (const target of targets) {
    const milliseconds = await ordinaryCost(server, target);
    onTarget(target, milliseconds);
    for (const dimension of target.dimensions) {
      const finding = await findIn(server, target, dimension, milliseconds, options);
      if (finding) findings.push(finding);
    }
  }
  return findings;
}

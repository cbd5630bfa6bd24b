import { z } from 'zod';

/** Number of connections of the CPU measurements. */
export const MAIN_CONNECTIONS = 32;

const Spread = z.object({ median: z.number(), least: z.number(), most: z.number() });
/** Median, minimum and maximum of several rounds. */
export type Spread = z.infer<typeof Spread>;

/** Measurements of one scenario (a kind of request) on one target (a measured server). */
export interface RequestFigures {
  readonly scenario: string;
  readonly connections: number;
  readonly target: string;
  /**
   * CPU time per request, divided by the CPU time per request of the reference in the same round. The reference is the bare
   * Next.js route, which only returns JSON. A round measures each target once.
   */
  readonly ratio: Spread;
  readonly cpuMicroseconds: number;
  readonly p50Milliseconds: number;
  readonly p99Milliseconds: number;
}

/** CPU time per request with MAIN_CONNECTIONS connections. */
const Cpu = z.object({
  scenario: z.string(),
  ratios: z.record(z.string(), Spread),
  /** Absent if the service was not measured. */
  serviceMicroseconds: z.number().optional(),
});
/** Latency of the service. */
const Latency = z.object({
  scenario: z.string(),
  connections: z.number(),
  p50Milliseconds: z.number(),
  p99Milliseconds: z.number(),
});
const Requests = z.object({
  /**
   * CPU time per request to the bare Next.js route with MAIN_CONNECTIONS connections. The route is measured again for each
   * scenario. The object contains the minimum and the maximum of these measurements.
   */
  bareMicroseconds: z.object({ least: z.number(), most: z.number() }),
  cpu: z.array(Cpu),
  latency: z.array(Latency),
});
export type Requests = z.infer<typeof Requests>;

const ColdStart = z.object({
  target: z.string(),
  request: z.string(),
  ratio: Spread,
  cpuMilliseconds: z.number(),
});
const Memory = z.object({
  target: z.string(),
  atRestMegabytes: z.number(),
  /** Memory after one request from each of many new users. Measured only for the service. */
  afterMegabytes: z.number().optional(),
});
/** CPU time that the database client uses for one statement, through the pg pool and through Prisma. */
const Statement = z.object({
  statement: z.string(),
  poolMicroseconds: z.number(),
  prismaMicroseconds: z.number(),
});
/** CPU time of the database process and median latency of one statement. */
const Cost = z.object({ serverMicroseconds: z.number(), milliseconds: z.number() });
const Table = z.object({
  users: z.number(),
  bytes: z.object({ table: z.number(), idIndex: z.number(), linkIndex: z.number() }),
  lookUpPages: z.number(),
  lookUp: Cost,
  insert: Cost,
});
/** Bytes that one cache request sends and receives. */
const Exchange = z.object({ sent: z.number(), received: z.number() });
const Profiled = z.object({
  target: z.string(),
  scenario: z.string(),
  /** Main-thread time per request, by owner of the code, such as a package or Node.js. */
  microseconds: z.record(z.string(), z.number()),
});
const Page = z.object({
  path: z.string(),
  scripts: z.number(),
  kilobytes: z.number(),
  /** Number of scripts that the identity provider serves. */
  ofTheProvider: z.number(),
});

/** Results for one Node.js release line. Each section (a part of the benchmark) may come from a different run. */
export const Figures = z.object({
  machine: z.string(),
  node: z.string(),
  /** Commit and date of each section. */
  measured: z.record(z.string(), z.object({ commit: z.string(), on: z.string() })),
  requests: Requests.optional(),
  coldStart: z.array(ColdStart).optional(),
  growth: z.array(z.object({ users: z.number(), scenario: z.string(), ratio: Spread })).optional(),
  memory: z.object({ users: z.number(), targets: z.array(Memory) }).optional(),
  profile: z.array(Profiled).optional(),
  statements: z.array(Statement).optional(),
  storage: z
    .object({
      tables: z.array(Table),
      cache: z.object({ bytesEach: z.number(), hit: Exchange, written: Exchange }),
    })
    .optional(),
  sizes: z
    .object({
      serverMegabytes: z.number(),
      functions: z.record(z.string(), z.number()),
      pages: z.array(Page),
    })
    .optional(),
});
export type Figures = z.infer<typeof Figures>;

const median = (values: readonly number[]) => {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const [low = Number.NaN, high = Number.NaN] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[middle]];
  return (low + high) / 2;
};

export const spreadOf = (values: readonly number[]): Spread => ({
  median: median(values),
  least: Math.min(...values),
  most: Math.max(...values),
});

/** Returns the values for the report: the CPU time with MAIN_CONNECTIONS connections, and the latency of the service. */
export function summarizeRequests(figures: readonly RequestFigures[]): Requests {
  const main = figures.filter(({ connections }) => connections === MAIN_CONNECTIONS);
  const bare = main
    .filter(({ target }) => target === 'bare')
    .map(({ cpuMicroseconds }) => Math.round(cpuMicroseconds));
  return {
    bareMicroseconds: { least: Math.min(...bare), most: Math.max(...bare) },
    cpu: [...new Set(main.map(({ scenario }) => scenario))].map((scenario) => {
      const measured = main.filter((each) => each.scenario === scenario && each.target !== 'bare');
      const service = measured.find(({ target }) => target === 'service');
      return {
        scenario,
        ratios: Object.fromEntries(measured.map(({ target, ratio }) => [target, ratio])),
        ...(service ? { serviceMicroseconds: service.cpuMicroseconds } : {}),
      };
    }),
    latency: figures
      .filter(({ target }) => target === 'service')
      .map(({ scenario, connections, p50Milliseconds, p99Milliseconds }) => ({
        scenario,
        connections,
        p50Milliseconds,
        p99Milliseconds,
      })),
  };
}

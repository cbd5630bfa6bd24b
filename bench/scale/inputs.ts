/** Source of a number: a vendor's page, a file of this repository or an assumption. */
interface Source {
  readonly source: string;
  /** Date of the version of the source that contains the number. A later version may contain a different number. */
  readonly date: string;
}

/** One number of the cost model. */
export interface Input extends Source {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

const at = (source: string, date: string): Source => ({ source, date });
const input = (name: string, value: number, unit: string, from: Source): Input => ({
  name,
  value,
  unit,
  ...from,
});

export const ASSUMPTION = at('assumption', '2026-11-23');
const REQUESTS = at('[performance.md](performance.md), Node.js 24, at 889066a', '2026-11-22');
const STORAGE = at('`npm run bench -- --quick --sections storage` at 8c1ab7e', '2026-11-22');
const BACKFILL = at('[endurance.md](endurance.md)', '2026-11-20');
const POOL = at('`lib/storage/database.ts`', '2026-11-23');
const PG = at('https://node-postgres.com/apis/pool', '2026-11-23');
const FAIR_USE = at('https://vercel.com/docs/limits/fair-use-guidelines', '2026-09-14');
const HOBBY = at('https://vercel.com/docs/plans/hobby', '2026-08-31');
const PRO = at('https://vercel.com/docs/plans/pro-plan', '2026-09-02');
const FUNCTIONS = at('https://vercel.com/docs/functions/limitations', '2025-12-18');
const CDN = at('https://vercel.com/docs/pricing/regional-pricing/iad1', '2026-07-27');
const CDN_INCLUDED = at('https://vercel.com/pricing', '2026-10-06');
const FLAT_RATE = at('https://vercel.com/docs/pricing/flat-rate-cdn', '2026-09-08');
const FIREWALL = at('https://vercel.com/docs/vercel-firewall/vercel-waf/usage-and-pricing', '2026-08-24');
const UPSTASH = at('https://upstash.com/pricing/redis', '2026-09-20');
const NEON = at('https://neon.com/docs/introduction/plans', '2026-11-12');

/** Numbers of daily users that docs/scale.md compares. */
export const SIZES = [1_000, 100_000, 10_000_000] as const;

/** The inputs of docs/scale.md. `npm run scale` computes the tables of that page from them. */
export const INPUTS = {
  requestsPerDay: input('guarded requests of a user', 30, 'a day', ASSUMPTION),
  sessionsPerDay: input('sessions of a user, each below 10 minutes', 3, 'a day', ASSUMPTION),
  newUserShare: input('new users, each with a webhook', 0.01, 'of the daily users', ASSUMPTION),
  peakHourShare: input('requests in the peak hour', 0.1, "of the day's requests", ASSUMPTION),
  peakSecond: input('busiest second', 1.5, 'times the average of the peak hour', ASSUMPTION),
  rowsPerUser: input('registered users', 10, 'for each daily user', ASSUMPTION),
  exchangeBytes: input('request and response', 2_500, 'bytes', ASSUMPTION),
  coresPerInstance: input('processor load of a busy instance', 0.5, 'cores', ASSUMPTION),
  databaseCacheShare: input('database memory that caches data', 0.75, 'of the memory', ASSUMPTION),
  hitCpu: input('processor time of a cache hit', 2.464, 'ms', REQUESTS),
  missCpu: input('processor time of a cache miss', 2.328, 'ms', REQUESTS),
  webhookCpu: input('processor time of a webhook that registers', 2.465, 'ms', REQUESTS),
  hitTime: input('duration of a cache hit, with 1 round trip of 1 ms', 6.666, 'ms', REQUESTS),
  missTime: input('duration of a cache miss, with 3 round trips of 1 ms', 10.982, 'ms', REQUESTS),
  webhookTime: input('duration of a webhook, with 2 round trips of 1 ms', 6.709, 'ms', REQUESTS),
  backfillPerSecond: input('`npm run users:backfill`', 1_398, 'users a second', BACKFILL),
  poolIdle: input('idle time of a database connection', 5, 's', POOL),
  defaultPoolIdle: input("pg's default idle time", 10, 's', PG),
  maxConnections: input('database connections of an instance', 10, 'at most', POOL),
  rowBytes: input('row in the table', 85, 'bytes', STORAGE),
  idIndexBytes: input('row in the index of internal ids', 57, 'bytes', STORAGE),
  linkIndexBytes: input('row in the index of identity-provider ids', 77, 'bytes', STORAGE),
  cachedIdBytes: input('cached id in Redis', 213, 'bytes', STORAGE),
  getBytes: input('`GET`, request and response, without TLS', 471, 'bytes', STORAGE),
  setBytes: input('`SET`, request and response, without TLS', 486, 'bytes', STORAGE),
  hobbyInvocations: input('Hobby function calls', 1_000_000, 'a month', FAIR_USE),
  hobbyMemory: input('Hobby memory', 360, 'GB-hours a month', FAIR_USE),
  hobbyCpu: input('Hobby processor', 4, 'hours a month', FAIR_USE),
  hobbyCdnRequests: input('Hobby CDN requests', 1_000_000, 'a month', HOBBY),
  proSeat: input('Pro seat, which includes usage for the same amount', 20, '$ a month', PRO),
  invocationPrice: input('function calls', 0.6, '$ per million', FAIR_USE),
  cpuPrice: input('processor', 0.128, '$ an hour', FAIR_USE),
  memoryPrice: input('memory', 0.0106, '$ a GB-hour', FAIR_USE),
  instanceMemory: input('function instance', 2, 'GB', FUNCTIONS),
  cdnRequestPrice: input('CDN requests on demand', 2, '$ per million', CDN),
  cdnIncludedRequests: input('included CDN requests', 10_000_000, 'a month', CDN_INCLUDED),
  cdnDataPrice: input('CDN data on demand', 0.15, '$ a GB', CDN),
  cdnIncludedData: input('included CDN data', 1_000, 'GB a month', CDN_INCLUDED),
  originDataPrice: input('data between CDN and functions', 0.06, '$ a GB', CDN),
  rateLimitPrice: input('requests that a rate limit rule lets through', 0.5, '$ per million', FIREWALL),
  upstashFreeCommands: input('Free, commands', 500_000, 'a month', UPSTASH),
  upstashCommandPrice: input('pay as you go', 2, '$ per million commands', UPSTASH),
  upstashIncludedData: input('pay as you go, included data', 200, 'GB a month', UPSTASH),
  upstashDataPrice: input('pay as you go, data above that', 0.03, '$ a GB', UPSTASH),
  upstashPerSecond: input('pay as you go, limit', 10_000, 'commands a second', UPSTASH),
  neonFreeHours: input('Free, compute', 100, 'CU-hours a month', NEON),
  neonComputePrice: input('Launch, compute', 0.106, '$ a CU-hour', NEON),
  neonStoragePrice: input('Launch, storage', 0.35, '$ a GB-month', NEON),
  neonMemory: input('memory of 1 CU', 4, 'GB', NEON),
} satisfies Record<string, Input>;

/** A CDN plan of Vercel: its price in dollars a month and its monthly allowances. */
interface CdnTier extends Source {
  readonly price: number;
  readonly requests: number;
  readonly gigabytes: number;
}

export const FLAT_RATE_CDN: readonly CdnTier[] = [
  { price: 0, requests: 1_000_000, gigabytes: 1_000, ...FLAT_RATE },
  { price: 20, requests: 10_000_000, gigabytes: 50_000, ...FLAT_RATE },
  { price: 100, requests: 50_000_000, gigabytes: 50_000, ...FLAT_RATE },
  { price: 300, requests: 150_000_000, gigabytes: 50_000, ...FLAT_RATE },
];

interface StorePlan extends Source {
  /** Dollars a month. */
  readonly price: number;
  /** Maximum number of commands a second. */
  readonly perSecond: number;
  readonly gigabytes: number;
}

/**
 * Plans of Upstash with a fixed price. `gigabytes` is the monthly transfer. The storage limits of the plans are omitted,
 * because the service stores far less data than they allow.
 */
export const UPSTASH_FIXED: readonly StorePlan[] = [
  { price: 10, perSecond: 10_000, gigabytes: 50, ...UPSTASH },
  { price: 20, perSecond: 10_000, gigabytes: 100, ...UPSTASH },
  { price: 100, perSecond: 10_000, gigabytes: 500, ...UPSTASH },
  { price: 200, perSecond: 10_000, gigabytes: 1_000, ...UPSTASH },
  { price: 400, perSecond: 10_000, gigabytes: 5_000, ...UPSTASH },
  { price: 800, perSecond: 16_000, gigabytes: 10_000, ...UPSTASH },
];

import { FLAT_RATE_CDN, INPUTS, UPSTASH_FIXED } from './inputs';

const DAYS = 30;
const DAY_SECONDS = 86_400;
const HOUR_SECONDS = 3_600;
const MONTH_HOURS = DAYS * 24;
const MILLION = 1_000_000;
const GIGABYTE = 1e9;
/**
 * `attachDatabasePool` (@vercel/functions) keeps an instance awake for this time after the idle timeout of its database
 * connections.
 */
const POOL_MARGIN_SECONDS = 0.1;
/** Lifetime of a cached id. */
const CACHE_SECONDS = 600;

const value = <Key extends keyof typeof INPUTS>(key: Key): number => INPUTS[key].value;

/** Returns the average resources that an active user needs in one day. */
function perUser() {
  const requests = value('requestsPerDay');
  const misses = value('sessionsPerDay');
  const webhooks = value('newUserShare');
  const hits = requests - misses;
  const seconds = (hit: number, miss: number, webhook: number) =>
    (hits * hit + misses * miss + webhooks * webhook) / 1_000;
  return {
    misses,
    calls: requests + webhooks,
    // A webhook that registers a user runs a SELECT and an INSERT.
    statements: misses + 2 * webhooks,
    commands: requests + misses,
    storeBytes: requests * value('getBytes') + misses * value('setBytes'),
    cpuSeconds: seconds(value('hitCpu'), value('missCpu'), value('webhookCpu')),
    seconds: seconds(value('hitTime'), value('missTime'), value('webhookTime')),
  };
}

/**
 * Returns the memory of all function instances in a month, in gigabyte-hours. After a statement, an instance stays alive for
 * `idleSeconds` (the idle timeout of its database connections) plus POOL_MARGIN_SECONDS. With little load, one instance is alive
 * for part of the time. With much load, the number of instances depends on the processor time.
 */
function memoryGigabyteHours(users: number, idleSeconds: number): number {
  const each = perUser();
  const aliveSeconds = each.seconds + each.statements * (idleSeconds + POOL_MARGIN_SECONDS);
  const lone = Math.min(1, (users * aliveSeconds) / DAY_SECONDS);
  const busy = (users * each.cpuSeconds) / DAY_SECONDS / value('coresPerInstance');
  return Math.max(lone, busy) * MONTH_HOURS * value('instanceMemory');
}

/** Returns the smallest sufficient compute size of Neon in compute units: 0.25, 0.5 or a whole number. */
const computeUnits = (needed: number): number => {
  if (needed <= 0.25) return 0.25;
  return needed <= 0.5 ? 0.5 : Math.ceil(needed);
};

export function usage(users: number) {
  const each = perUser();
  const atPeak = (perDay: number) => (users * perDay * value('peakHourShare')) / HOUR_SECONDS;
  const monthly = (perDay: number) => users * perDay * DAYS;
  const rows = users * value('rowsPerUser');
  const hotBytes = rows * (value('rowBytes') + value('linkIndexBytes'));
  const instancesAtPeak = Math.max(1, Math.ceil(atPeak(each.cpuSeconds) / value('coresPerInstance')));
  return {
    requests: monthly(each.calls),
    requestsPerSecond: atPeak(each.calls),
    // Each request calls two functions, the middleware and the route.
    invocations: 2 * monthly(each.calls),
    cpuHours: monthly(each.cpuSeconds) / HOUR_SECONDS,
    coresAtPeak: atPeak(each.cpuSeconds),
    instancesAtPeak,
    connectionsAtPeak: instancesAtPeak * value('maxConnections'),
    memory: memoryGigabyteHours(users, value('poolIdle')),
    memoryWithDefaultIdle: memoryGigabyteHours(users, value('defaultPoolIdle')),
    exchangeGigabytes: (monthly(each.calls) * value('exchangeBytes')) / GIGABYTE,
    commands: monthly(each.commands),
    commandsPerSecond: atPeak(each.commands),
    storeGigabytes: monthly(each.storeBytes) / GIGABYTE,
    cachedIds: atPeak(each.misses) * CACHE_SECONDS,
    cachedBytes: atPeak(each.misses) * CACHE_SECONDS * value('cachedIdBytes'),
    statementsPerSecond: atPeak(each.statements),
    statementsWithoutCache: atPeak(each.calls),
    rows,
    tableBytes: rows * value('rowBytes'),
    indexBytes: rows * (value('idIndexBytes') + value('linkIndexBytes')),
    computeUnits: computeUnits(hotBytes / GIGABYTE / value('databaseCacheShare') / value('neonMemory')),
    backfillSeconds: rows / value('backfillPerSecond'),
  };
}

type Usage = ReturnType<typeof usage>;

/** Returns the lower of two prices of the CDN: on demand, or the smallest sufficient flat rate. */
function cdnCost({ requests, exchangeGigabytes }: Usage): number {
  const onDemand =
    (Math.max(0, requests - value('cdnIncludedRequests')) / MILLION) * value('cdnRequestPrice') +
    Math.max(0, exchangeGigabytes - value('cdnIncludedData')) * value('cdnDataPrice');
  const flat = FLAT_RATE_CDN.find((tier) => tier.requests >= requests && tier.gigabytes >= exchangeGigabytes);
  return Math.min(onDemand, flat?.price ?? Number.POSITIVE_INFINITY);
}

/**
 * Returns the monthly price of the cheapest sufficient Upstash plan. Each plan has a limit of commands a second. A plan with a
 * fixed price also has a limit of the monthly transfer.
 */
function storeCost({ commands, commandsPerSecond, storeGigabytes }: Usage): number {
  const busiest = commandsPerSecond * value('peakSecond');
  const perUse =
    (commands / MILLION) * value('upstashCommandPrice') +
    Math.max(0, storeGigabytes - value('upstashIncludedData')) * value('upstashDataPrice');
  const prices = UPSTASH_FIXED.filter(
    (plan) => plan.perSecond >= busiest && plan.gigabytes >= storeGigabytes,
  ).map(({ price }) => price);
  return Math.min(...prices, busiest <= value('upstashPerSecond') ? perUse : Number.POSITIVE_INFINITY);
}

/** Returns the cost in dollars a month at list prices. */
export function cost(users: number) {
  const used = usage(users);
  const lines = {
    cdn: cdnCost(used),
    originData: used.exchangeGigabytes * value('originDataPrice'),
    invocations: (used.invocations / MILLION) * value('invocationPrice'),
    cpu: used.cpuHours * value('cpuPrice'),
    memory: used.memory * value('memoryPrice'),
    rateLimit: (used.requests / MILLION) * value('rateLimitPrice'),
  };
  const metered = Object.values(lines).reduce((sum, line) => sum + line, 0);
  // The price of the Pro seat covers metered usage up to the same number of dollars.
  const vercel = value('proSeat') + Math.max(0, metered - value('proSeat'));
  const store = storeCost(used);
  const database =
    used.computeUnits * MONTH_HOURS * value('neonComputePrice') +
    ((used.tableBytes + used.indexBytes) / GIGABYTE) * value('neonStoragePrice');
  return { ...lines, vercel, store, database, total: vercel + store + database };
}

/**
 * Returns, for each monthly allowance of the free plans, the number of daily users who use it up. `databaseHours` is not a
 * number of users. It is the number of hours a month that the smallest compute size of Neon can run.
 */
export function freePlanEnds() {
  const one = usage(1);
  const users = (allowance: number, used: number) => Math.floor(allowance / used);
  return {
    commands: users(value('upstashFreeCommands'), one.commands),
    invocations: users(value('hobbyInvocations'), one.invocations),
    memory: users(value('hobbyMemory'), one.memory),
    memoryWithDefaultIdle: users(value('hobbyMemory'), one.memoryWithDefaultIdle),
    cdnRequests: users(value('hobbyCdnRequests'), one.requests),
    cpu: users(value('hobbyCpu'), one.cpuHours),
    databaseHours: value('neonFreeHours') / computeUnits(0),
  };
}

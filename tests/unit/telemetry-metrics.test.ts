import { readFileSync } from 'node:fs';
import { DataPointType, MeterProvider, type MetricData, MetricReader } from '@opentelemetry/sdk-metrics';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { databasePool } from '#lib/telemetry/database-pool';
import { instruments, type Metrics } from '#lib/telemetry/metrics';
import type { ReceivedMetric } from '../harness/dependencies/otlp-receiver';
import { metricsTable } from '../harness/telemetry';

/** Collects metrics when a test calls `collect()`. Exports nothing. */
class TestReader extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}

let reader: TestReader;
let metrics: Metrics;
beforeEach(() => {
  reader = new TestReader();
  metrics = instruments(new MeterProvider({ readers: [reader] }).getMeter('test'));
  databasePool.current = undefined;
});
afterEach(() => {
  databasePool.current = undefined;
  vi.restoreAllMocks();
});

async function collect(): Promise<MetricData[]> {
  const { resourceMetrics, errors } = await reader.collect();
  expect(errors).toEqual([]);
  return resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
}

/**
 * Returns the value of each point of a metric. The key is the attribute values of the point, joined with spaces. The value of a
 * histogram is the sum of its measurements.
 */
async function valuesOf(name: string): Promise<Record<string, number>> {
  const metric = (await collect()).find(({ descriptor }) => descriptor.name === name);
  const points = (metric?.dataPoints ?? []).map(({ attributes, value }): [string, number] => [
    Object.values(attributes).join(' '),
    typeof value === 'number' ? value : (value.sum ?? Number.NaN),
  ]);
  return Object.fromEntries(points);
}

const request = {
  method: 'GET',
  route: '/users/v1/me',
  status: 200,
  seconds: 0.25,
  logFields: {},
} as const;
const delivery = { ...request, method: 'POST', route: '/webhooks/idp/v1/user-created' } as const;

/** Updates every metric, except the metric of the circuit breaker, which has a value from the start. */
function updateAll(): void {
  databasePool.current = { totalCount: 5, idleCount: 3, waitingCount: 7 };
  metrics.recordSpan('guard', 'passed', 1);
  metrics.recordSpan('cache read', 'hit', 1);
  metrics.recordSpan('verify webhook', 'verified', 1);
  metrics.recordRequest({ ...delivery, logFields: { registered: 'created' } });
  metrics.recordEvent(Date.now());
}

function kindOf(metric: MetricData): ReceivedMetric['kind'] {
  if (metric.dataPointType === DataPointType.HISTOGRAM) return 'histogram';
  if (metric.dataPointType !== DataPointType.SUM) return 'gauge';
  return metric.isMonotonic ? 'counter' : 'up-down counter';
}

test('The table in docs/telemetry.md has the name, the kind, the unit, the attributes and the description of every metric', async () => {
  updateAll();
  const described = (await collect()).map((metric): ReceivedMetric => {
    const { name, description, unit } = metric.descriptor;
    const points = metric.dataPoints.map(({ attributes }) => ({ attributes, value: 0 }));
    return { name, description, unit, kind: kindOf(metric), points };
  });
  const sorted = described.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  expect(readFileSync('docs/telemetry.md', 'utf8')).toContain(metricsTable(sorted));
});

test.each([
  [
    'http.server.request.duration',
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
  ],
  ['identity_link.cache.operation.duration', [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500]],
  [
    'identity_link.webhook.event.age',
    [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800, 7_200, 18_000, 36_000, 100_000],
  ],
])('The histogram %s has bucket boundaries that fit its unit', async (name, boundaries) => {
  updateAll();
  const metric = (await collect()).find(({ descriptor }) => descriptor.name === name);
  expect(metric?.dataPoints[0]?.value).toMatchObject({ buckets: { boundaries } });
});

test('Guarded requests are counted by outcome, and other spans are not counted as guarded requests', async () => {
  metrics.recordSpan('guard', 'passed', 1);
  metrics.recordSpan('guard', 'passed', 1);
  metrics.recordSpan('guard', 'failed', 1);
  metrics.recordSpan('register', 'created', 1);
  expect(await valuesOf('identity_link.guard.requests')).toEqual({ passed: 2, failed: 1 });
});

test('The duration metric of cache calls has the operation and the outcome as attributes, and excludes spans that are not cache calls', async () => {
  metrics.recordSpan('cache read', 'hit', 1.5);
  metrics.recordSpan('cache read', 'miss', 2);
  metrics.recordSpan('cache write', 'stored', 4);
  metrics.recordSpan('guard', 'passed', 8);
  expect(await valuesOf('identity_link.cache.operation.duration')).toEqual({
    'read hit': 1.5,
    'read miss': 2,
    'write stored': 4,
  });
});

test('The age of the last verified webhook is measured in seconds, and is absent before the first verified webhook', async () => {
  const age = () => valuesOf('identity_link.webhook.last_verified.age');
  const now = vi.spyOn(performance, 'now').mockReturnValue(10_000);
  metrics.recordSpan('verify webhook', 'rejected', 1);
  metrics.recordSpan('guard', 'verified', 1);
  expect(await age()).toEqual({});
  metrics.recordSpan('verify webhook', 'verified', 1);
  now.mockReturnValue(12_500);
  metrics.recordSpan('verify webhook', 'rejected', 1);
  expect(await age()).toEqual({ '': 2.5 });
});

test('The metrics of the database pool count the used and idle connections and the waiting statements, and are absent without a pool', async () => {
  const counts = async () => [
    await valuesOf('db.client.connection.count'),
    await valuesOf('db.client.connection.pending_requests'),
  ];
  expect(await counts()).toEqual([{}, {}]);
  databasePool.current = { totalCount: 5, idleCount: 3, waitingCount: 7 };
  expect(await counts()).toEqual([{ 'users used': 2, 'users idle': 3 }, { users: 7 }]);
});

// A registration finds or creates the link of a user in the database.
test('A registration is counted with its source (`request`, `register` or `webhook`) and its outcome', async () => {
  metrics.recordRequest({ ...request, logFields: { caller: 'existing' } });
  metrics.recordPageUser({ caller: 'created' });
  metrics.recordRequest({ ...request, route: '/auth/v1/register', logFields: { registered: 'existing' } });
  metrics.recordRequest({ ...delivery, logFields: { registered: 'forgotten' } });
  expect(await valuesOf('identity_link.registrations')).toEqual({
    'request existing': 1,
    'request created': 1,
    'register existing': 1,
    'webhook forgotten': 1,
  });
});

test('A request without a registration is not counted as a registration', async () => {
  metrics.recordRequest(request);
  metrics.recordPageUser({ cache: 'hit' });
  expect(await valuesOf('identity_link.registrations')).toEqual({});
});

test.each([
  ['user.created', 200, 'user.created acknowledged'],
  ['user.updated', 399, 'other acknowledged'],
  ['a type that a sender chose', 400, 'other rejected'],
  [undefined, 499, 'none rejected'],
  ['user.created', 500, 'user.created failed'],
])('A webhook of the type %s with the status %i is counted as "%s"', async (eventType, status, counted) => {
  metrics.recordRequest({ ...delivery, status, logFields: eventType === undefined ? {} : { eventType } });
  expect(await valuesOf('identity_link.webhooks')).toEqual({ [counted]: 1 });
});

test('A request to a route other than the webhook is not counted as a webhook', async () => {
  metrics.recordRequest({ ...request, logFields: { eventType: 'user.created' } });
  expect(await valuesOf('identity_link.webhooks')).toEqual({});
});

test('The duration metric of requests has the method, the route and the status as attributes, and a method that is not standard becomes `_OTHER`', async () => {
  metrics.recordRequest(request);
  metrics.recordRequest({ ...request, method: 'BREW', status: 405, seconds: 2 });
  expect(await valuesOf('http.server.request.duration')).toEqual({
    'GET /users/v1/me 200': 0.25,
    '_OTHER /users/v1/me 405': 2,
  });
});

test.each([
  ['before', 97_500, 2.5],
  ['after', 100_001, 0],
])(
  'The age of an event is measured in seconds and is not negative: event created %s its acknowledgment',
  async (_order, sentAt, age) => {
    vi.spyOn(Date, 'now').mockReturnValue(100_000);
    metrics.recordEvent(sentAt);
    expect(await valuesOf('identity_link.webhook.event.age')).toEqual({ '': age });
  },
);

test('The metric of the circuit breaker is 0 at the start, 1 while the breaker is open, and 0 afterwards', async () => {
  const open = () => valuesOf('identity_link.cache.breaker.open');
  expect(await open()).toEqual({ '': 0 });
  metrics.addOpenBreakers(1);
  expect(await open()).toEqual({ '': 1 });
  metrics.addOpenBreakers(-1);
  expect(await open()).toEqual({ '': 0 });
});

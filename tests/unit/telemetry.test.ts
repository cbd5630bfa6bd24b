import { readFileSync } from 'node:fs';
import { diag, trace } from '@opentelemetry/api';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { log } from '#lib/base/log';
import { type Telemetry, withSpan } from '#lib/base/telemetry';
import type { SpanOutcomes } from '#lib/core/ports';
import { startTelemetry } from '#lib/telemetry/sdk';
import { telemetrySettings } from '#lib/telemetry/settings';
import { type OtlpReceiver, startOtlpReceiver } from '../harness/dependencies/otlp-receiver';
import { stopAfterTest } from '../vitest/stop-after-all';

const WEBHOOKS = '/webhooks/idp/v1/user-created';
const request = {
  requestId: 'request',
  method: 'GET',
  route: '/users/v1/me',
  status: 200,
  ms: 250,
  fields: {},
  quiet: false,
} as const;

let receiver: OtlpReceiver;
let warn = vi.spyOn(log, 'warn');
beforeEach(async () => {
  receiver = stopAfterTest(await startOtlpReceiver());
  warn = vi.spyOn(log, 'warn').mockReturnValue();
});
afterEach(() => {
  diag.disable();
  vi.useRealTimers();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** Starts telemetry that exports to the receiver. Timers run only when a test advances the clock. */
function start(variables: Readonly<Record<string, string>> = {}, settings = {}): Telemetry {
  const all = { VERCEL: undefined, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...variables };
  for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  return startTelemetry({ traces: true, metrics: true, ...settings });
}

/** Records a span with this outcome. Returns its ids. */
const span = <S extends keyof SpanOutcomes>(telemetry: Telemetry, name: S, outcome: SpanOutcomes[S]) =>
  telemetry.withSpan(
    name,
    async () => telemetry.spanIds(),
    () => outcome,
  );
const guard = (telemetry: Telemetry) => span(telemetry, 'guard', 'passed');
const points = (name: string) =>
  receiver
    .metrics()
    .find((metric) => metric.name === name)
    ?.points.map(({ attributes, value }) => [...Object.values(attributes), value]);

test('A span is exported with the outcome of its work, and a span inside another one is its child', async () => {
  const telemetry = start();
  const ids = await telemetry.withSpan(
    'register',
    () => guard(telemetry),
    () => 'created',
  );
  await telemetry.flush();
  const [child, parent] = receiver.spans();
  expect(parent).toMatchObject({ name: 'register', attributes: { 'identity_link.outcome': 'created' } });
  expect(child).toMatchObject({ name: 'guard', parentSpanId: parent?.spanId });
  expect(ids).toEqual({ trace_id: parent?.traceId, span_id: child?.spanId });
  expect(telemetry.spanIds()).toBeUndefined();
});

test('The span of work that rejects has the outcome failed and the status ERROR, and the error is passed through', async () => {
  const telemetry = start();
  const failing = telemetry.withSpan(
    'guard',
    () => Promise.reject(new Error('failed by a test')),
    () => 'passed',
  );
  await expect(failing).rejects.toThrow('failed by a test');
  await telemetry.flush();
  expect(receiver.spans()).toMatchObject([
    { attributes: { 'identity_link.outcome': 'failed' }, status: { code: 2 } },
  ]);
});

const TRACE = 'a'.repeat(32);
const handle = (telemetry: Telemetry, headers: HeadersInit, recorded = {}) =>
  telemetry.withRequest(new Headers(headers), async () => {
    await guard(telemetry);
    telemetry.recordRequest({ ...request, ...recorded });
    return telemetry.spanIds();
  });

test('A request is one span in the trace of its client, with the name of its route and without the trace state, and the spans of the service are its children', async () => {
  const telemetry = start();
  const traceparent = `00-${TRACE}-${'b'.repeat(16)}-01`;
  const ids = await handle(telemetry, { traceparent, tracestate: 'user=alice', baggage: 'user=alice' });
  await telemetry.flush();
  const [child, parent] = receiver.spans();
  expect(parent).toMatchObject({
    name: 'GET /users/v1/me',
    traceId: TRACE,
    parentSpanId: 'b'.repeat(16),
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/users/v1/me',
      'http.response.status_code': 200,
    },
    status: { code: 0 },
  });
  expect(child).toMatchObject({ name: 'guard', traceId: TRACE, parentSpanId: parent?.spanId });
  expect(ids).toEqual({ trace_id: TRACE, span_id: parent?.spanId });
  expect(receiver.received()).not.toContain('alice');
});

test('The span of a failed request has the status ERROR, and an unknown method and an invalid trace header are not exported', async () => {
  const telemetry = start();
  await handle(telemetry, { traceparent: 'alice' }, { method: 'ALICE', status: 500 });
  await telemetry.flush();
  expect(receiver.spans()[1]).toMatchObject({ name: '_OTHER /users/v1/me', status: { code: 2 } });
  expect(receiver.received()).not.toMatch(/alice/i);
});

test('The lookup of the user of a page is a span, and the spans of other libraries are not exported', async () => {
  const telemetry = start();
  await telemetry.withRequest(new Headers(), async () => {
    trace.getTracer('next.js').startSpan('GET /users/alice').end();
    telemetry.recordPageUser({ caller: 'created' });
  });
  await telemetry.flush();
  expect(receiver.spans()).toMatchObject([{ name: 'user', attributes: {} }]);
});

test('The recorded requests, cache calls, registrations and webhooks are exported as metrics', async () => {
  const telemetry = start();
  await span(telemetry, 'cache read', 'hit');
  await span(telemetry, 'verify webhook', 'rejected');
  telemetry.recordRequest({ ...request, fields: { caller: 'existing' } });
  telemetry.recordRequest({ ...request, method: 'BREW', status: 405 });
  telemetry.recordRequest({ ...request, route: '/auth/v1/register', fields: { registered: 'created' } });
  for (const status of [200, 400, 500])
    telemetry.recordRequest({ ...request, route: WEBHOOKS, status, fields: { registered: 'forgotten' } });
  telemetry.recordPageUser({ caller: 'created' });
  telemetry.recordPageUser({ cache: 'hit' });
  telemetry.breakerOpened();
  await telemetry.flush();
  expect(points('http.server.request.duration')).toEqual(
    expect.arrayContaining([
      ['GET', '/users/v1/me', 200, 1],
      ['_OTHER', '/users/v1/me', 405, 1],
    ]),
  );
  expect(points('identity_link.cache.operation.duration')).toEqual([['read', 'hit', 1]]);
  expect(points('identity_link.registrations')).toEqual([
    ['request', 'existing', 1],
    ['register', 'created', 1],
    ['webhook', 'forgotten', 3],
    ['request', 'created', 1],
  ]);
  expect(points('identity_link.webhooks')).toEqual([
    ['acknowledged', 1],
    ['rejected', 1],
    ['failed', 1],
  ]);
  expect(points('identity_link.cache.breaker.open')).toEqual([[1]]);
  expect(points('identity_link.webhook.last_verified.age') ?? []).toEqual([]);
});

test('The age of the last verified webhook is exported after a webhook was verified, and a closed circuit breaker as 0', async () => {
  const telemetry = start();
  await span(telemetry, 'verify webhook', 'verified');
  await telemetry.flush();
  expect(points('identity_link.webhook.last_verified.age')).toEqual([[expect.any(Number)]]);
  expect(points('identity_link.cache.breaker.open')).toEqual([[0]]);
});

test.each([
  [{ traces: false }, '/v1/metrics application/json', undefined],
  [{ metrics: false }, '/v1/traces application/json', expect.any(Object)],
])(
  'With the settings %j, only the other signal is exported, and log lines have ids only with traces',
  async (settings, call, ids) => {
    const { fetch } = globalThis;
    const telemetry = start({}, settings);
    telemetry.recordRequest(request);
    expect(await guard(telemetry)).toEqual(ids);
    await telemetry.flush();
    expect(receiver.calls).toEqual([call]);
    expect(globalThis.fetch).toBe(fetch);
  },
);

test.each([
  [{ OTEL_SDK_DISABLED: 'false' }, { 'service.name': 'identity-link' }, ['cloud.provider']],
  [
    { OTEL_SERVICE_NAME: 'links', OTEL_RESOURCE_ATTRIBUTES: 'team=users', VERCEL_ENV: 'preview' },
    {
      'service.name': 'links',
      team: 'users',
      'cloud.provider': 'vercel',
      'deployment.environment.name': 'preview',
    },
    [],
  ],
])(
  'With the variables %j, the telemetry resource has the attributes %j and not %j',
  async (variables, attributes, absent) => {
    const telemetry = start(variables);
    await guard(telemetry);
    await telemetry.flush();
    for (const resource of receiver.resources()) {
      expect(resource).toMatchObject({
        'service.instance.id': expect.stringMatching(/^[\da-f-]{36}$/),
        ...attributes,
      });
      for (const name of absent) expect(resource).not.toHaveProperty([name]);
    }
  },
);

test('Errors of OpenTelemetry are logged at most once a minute and without their messages, and its warnings are not logged', () => {
  start();
  for (const level of ['verbose', 'debug', 'info', 'warn', 'error', 'error'] as const)
    diag[level]('of alice');
  expect(warn).toHaveBeenCalledExactlyOnceWith({}, 'telemetry could not be sent');
});

test('A collector that does not respond does not block the export at a shutdown', async () => {
  receiver.treat('hang');
  const telemetry = start();
  await guard(telemetry);
  const flushed = telemetry.flush();
  await vi.advanceTimersByTimeAsync(1_500);
  expect(await flushed).toBeUndefined();
});

/** Replaces the API of a Vercel function. Returns the promises for which the function stays alive. */
function stubVercel(): Promise<unknown>[] {
  const promises: Promise<unknown>[] = [];
  const symbol = Symbol.for('@vercel/request-context');
  Reflect.set(globalThis, symbol, {
    get: () => ({ waitUntil: (work: Promise<unknown>) => promises.push(work) }),
  });
  onTestFinished(() => void Reflect.deleteProperty(globalThis, symbol));
  return promises;
}

test('On Vercel, the function stays alive until the metrics of its requests and pages are exported, in few exports. Elsewhere, a request does not export them', async () => {
  const promises = stubVercel();
  start().recordRequest(request);
  expect(promises).toEqual([]);
  const telemetry = start({ VERCEL: '1' }, { traces: false });
  telemetry.recordPageUser({ caller: 'created' });
  expect(promises).toHaveLength(1);
  for (let count = 0; count < 50; count += 1) telemetry.recordRequest(request);
  await Promise.all(promises);
  expect(points('http.server.request.duration')).toEqual([['GET', '/users/v1/me', 200, 50]]);
  expect(receiver.calls.length).toBeLessThan(5);
});

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.example:4318/otlp/' };
const BOTH = { traces: true, metrics: true };
const TRACES = { traces: true, metrics: false };
const METRICS = { traces: false, metrics: true };

test.each<[Record<string, string>, object | undefined]>([
  [{}, undefined],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, undefined],
  [ENDPOINT, BOTH],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'false' }, BOTH],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'True' }, undefined],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'otlp' }, BOTH],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'zipkin' }, METRICS],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' }, undefined],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a/traces' }, TRACES],
  [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: ' http://a/m ' }, METRICS],
])('The variables %j enable the signals %j', (variables, settings) => {
  expect(telemetrySettings(variables)).toEqual(settings);
});

test.each(['grpc://token@a', 'a:4318', 'https://'])(
  'The invalid OTLP endpoint %s disables its signal, and the warning does not contain it',
  (endpoint) => {
    expect(telemetrySettings({ ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint })).toEqual(METRICS);
    const message = 'the OTLP endpoint is not an http(s):// URL: the signal is disabled';
    expect(warn.mock.calls).toEqual([[{ signal: 'traces' }, message]]);
  },
);

test('Disabled telemetry adds nothing to the work of a span', () => {
  const promise = Promise.resolve('done');
  const outcomeOf = vi.fn();
  expect(withSpan('guard', () => promise, outcomeOf)).toBe(promise);
  expect(outcomeOf).not.toHaveBeenCalled();
});

test.each(['alerts.yaml', 'dashboard.json'])('%s uses only the names of docs/telemetry.md', (file) => {
  const table = readFileSync('docs/telemetry.md', 'utf8').match(/^\| `.*\|$/gm) ?? [];
  const known = table.flatMap((row) =>
    [...row.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name.replaceAll('.', '_')),
  );
  const rules = readFileSync(`docs/telemetry/${file}`, 'utf8').replaceAll(/^ *#.*$/gm, '');
  const used = [...rules.matchAll(/\b(?:identity_link|http)_\w+/g)].map(([name]) =>
    name.replace(/_(?:total|(?:seconds|milliseconds)(?:_count|_bucket)?)$/, ''),
  );
  expect(used.length).toBeGreaterThan(10);
  expect(used.filter((name) => !known.includes(name))).toEqual([]);
});

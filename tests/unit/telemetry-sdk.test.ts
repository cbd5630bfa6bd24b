import http, { createServer, type IncomingHttpHeaders } from 'node:http';
import https from 'node:https';
import { context, diag, metrics, propagation, trace } from '@opentelemetry/api';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { log } from '#lib/log';
import { startTelemetry } from '#lib/telemetry/sdk';
import type { Telemetry } from '#lib/telemetry/with-span';
import { close, listen } from '../../dev/system/listen';
import { type OtlpReceiver, startOtlpReceiver } from '../harness/dependencies/otlp-receiver';
import { stopAfterTest } from '../vitest/stop-after-all';

const JSON_SPANS = { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' };
const request = {
  method: 'GET',
  route: '/users/v1/me',
  status: 200,
  seconds: 0.25,
  logFields: {},
} as const;

let receiver: OtlpReceiver;
let warn = vi.spyOn(log, 'warn');
beforeEach(async () => {
  receiver = stopAfterTest(await startOtlpReceiver());
  warn = vi.spyOn(log, 'warn').mockReturnValue();
  // @vercel/otel replaces `fetch` and the functions `request` and `get` of http and https. They are restored after each test.
  const { fetch } = globalThis;
  const originals = [http, https].map((module) => ({ ...module }));
  return () => {
    globalThis.fetch = fetch;
    for (const [index, module] of [http, https].entries())
      Object.assign(module, { request: originals[index]?.request, get: originals[index]?.get });
  };
});
afterEach(() => {
  for (const api of [trace, metrics, context, propagation, diag]) api.disable();
  vi.useRealTimers();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/**
 * Starts telemetry that exports to the receiver. The timeouts of exports elapse only when a test advances the clock, so a slow
 * machine does not affect a test.
 */
function start(
  variables: Readonly<Record<string, string>> = JSON_SPANS,
  signals: readonly ('traces' | 'metrics')[] = ['traces', 'metrics'],
): Telemetry {
  for (const [name, value] of Object.entries({ VERCEL: undefined, ...variables })) vi.stubEnv(name, value);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  return startTelemetry(
    Object.fromEntries(signals.map((signal) => [signal, `${receiver.url}/v1/${signal}`])),
  );
}

const guard = (telemetry: Telemetry) =>
  telemetry.withSpan(
    'guard',
    async () => telemetry.spanIds(),
    () => 'passed',
  );
const points = (name: string) =>
  receiver
    .metrics()
    .find((metric) => metric.name === name)
    ?.points.map(({ attributes, value }) => [...Object.values(attributes), value]);

test('withSpan() returns the result of the work, and exports a span and a metric with its outcome', async () => {
  const telemetry = start();
  const now = vi.spyOn(performance, 'now').mockReturnValue(1_000);
  const work = async () => {
    now.mockReturnValue(1_005);
    return 'done';
  };
  expect(await telemetry.withSpan('cache read', work, () => 'hit')).toBe('done');
  await telemetry.flush();
  expect(receiver.spans()).toMatchObject([
    { name: 'cache read', attributes: { 'identity_link.outcome': 'hit' }, status: { code: 0 } },
  ]);
  expect(points('identity_link.cache.operation.duration')).toEqual([['read', 'hit', 1]]);
  expect(receiver.received()).toContain('"sum":5,');
});

test('If the work of a span rejects, withSpan() passes the error through, and the span has the outcome failed and the status ERROR', async () => {
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
  expect(points('identity_link.guard.requests')).toEqual([['failed', 1]]);
});

test('A span that starts during the work of another span is a child of that span', async () => {
  const telemetry = start();
  await telemetry.withSpan(
    'register',
    () => guard(telemetry),
    () => 'created',
  );
  await telemetry.flush();
  const [child, parent] = receiver.spans();
  expect(child).toMatchObject({ name: 'guard', parentSpanId: parent?.spanId, traceId: parent?.traceId });
});

test('spanIds() returns the ids of the current span, and undefined outside of a span', async () => {
  const telemetry = start();
  const ids = await guard(telemetry);
  await telemetry.flush();
  const [span] = receiver.spans();
  expect(ids).toEqual({ trace_id: span?.traceId, span_id: span?.spanId });
  expect(telemetry.spanIds()).toBeUndefined();
});

test('spanIds() returns undefined in a span that is not sampled', async () => {
  const telemetry = start({ OTEL_TRACES_SAMPLER: 'always_off' });
  expect(await guard(telemetry)).toBeUndefined();
});

test('recordRequest(), recordPageUser(), recordEvent(), breakerOpened() and breakerClosed() update the exported metrics', async () => {
  const telemetry = start();
  telemetry.recordRequest(request);
  telemetry.recordPageUser({ caller: 'created' });
  telemetry.recordEvent(Date.now());
  telemetry.breakerOpened();
  telemetry.breakerOpened();
  telemetry.breakerClosed();
  await telemetry.flush();
  expect(points('http.server.request.duration')).toEqual([['GET', '/users/v1/me', 200, 1]]);
  expect(points('identity_link.registrations')).toEqual([['request', 'created', 1]]);
  expect(points('identity_link.webhook.event.age')).toEqual([[1]]);
  expect(points('identity_link.cache.breaker.open')).toEqual([[1]]);
});

test('Spans are redacted. A span keeps its route if recordRequest() has recorded a request to this route', async () => {
  const telemetry = start();
  telemetry.recordRequest({ ...request, route: '/recorded/v1/[id]' });
  for (const route of ['/recorded/v1/[id]', '/recorded/v1/alice'])
    trace
      .getTracer('next.js')
      .startSpan('alice', { attributes: { 'http.route': route, 'http.target': 'alice' } })
      .end();
  await telemetry.flush();
  expect(receiver.spans().map(({ attributes }) => attributes)).toEqual([
    { 'http.route': '/recorded/v1/[id]' },
    { 'http.route': '/' },
  ]);
  expect(receiver.received()).not.toContain('alice');
});

test('Without an endpoint for metrics, only spans are exported', async () => {
  const telemetry = start(JSON_SPANS, ['traces']);
  telemetry.recordRequest(request);
  await guard(telemetry);
  await telemetry.flush();
  expect(receiver.calls).toEqual(['/v1/traces application/json']);
});

test('Without an endpoint for traces, only metrics are exported, withSpan() creates no span, and `fetch` is not replaced', async () => {
  const { fetch } = globalThis;
  const telemetry = start(JSON_SPANS, ['metrics']);
  expect(await guard(telemetry)).toBeUndefined();
  await telemetry.flush();
  expect(receiver.calls).toEqual(['/v1/metrics application/json']);
  expect(globalThis.fetch).toBe(fetch);
});

test('The value `false` of OTEL_SDK_DISABLED does not disable the export', async () => {
  const telemetry = start({ ...JSON_SPANS, OTEL_SDK_DISABLED: 'false' });
  await guard(telemetry);
  await telemetry.flush();
  expect(receiver.spans()).toHaveLength(1);
});

test.each([
  [{}, 'application/x-protobuf'],
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, 'application/json'],
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: '' }, 'application/json'],
  [{ OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }, 'application/json'],
  [
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' },
    'application/x-protobuf',
  ],
])('The variables %j set the format of spans to %s', async (variables, format) => {
  const telemetry = start(variables, ['traces']);
  await guard(telemetry);
  await telemetry.flush();
  expect(receiver.calls).toEqual([`/v1/traces ${format}`]);
});

test.each([
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'authorization=common' }, 'common'],
  [{ OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'authorization=Bearer%20own' }, 'Bearer own'],
  [
    {
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=common',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'authorization=own',
    },
    'own',
  ],
])('The variables %j set the header `authorization: %s` of exported spans', async (variables, header) => {
  const telemetry = start({ ...JSON_SPANS, ...variables }, ['traces']);
  await guard(telemetry);
  await telemetry.flush();
  expect(receiver.calls).toEqual([`/v1/traces application/json ${header}`]);
});

test.each([
  [{}, { 'service.name': 'identity-link' }, ['cloud.provider', 'vercel.runtime']],
  [{ OTEL_SERVICE_NAME: 'links' }, { 'service.name': 'links' }, ['cloud.provider', 'vercel.runtime']],
  [{ VERCEL: '1' }, { 'cloud.provider': 'vercel', 'vercel.runtime': 'nodejs' }, []],
])(
  'With the variables %j, the telemetry resource has the attributes %j and not %j',
  async (variables, attributes, absent) => {
    const telemetry = start({ ...JSON_SPANS, ...variables });
    await guard(telemetry);
    await telemetry.flush();
    expect(receiver.resources()).toHaveLength(2);
    for (const resource of receiver.resources()) {
      expect(resource).toMatchObject({
        'service.instance.id': expect.stringMatching(/^[\da-f-]{36}$/),
        ...attributes,
      });
      for (const name of absent) expect(resource).not.toHaveProperty([name]);
    }
  },
);

test.each([
  [{}, 60_000],
  [{ OTEL_METRIC_EXPORT_INTERVAL: 'often' }, 60_000],
  [{ OTEL_METRIC_EXPORT_INTERVAL: '1000' }, 1_000],
])('With the variables %j, metrics are exported every %i ms', (variables, milliseconds) => {
  const setInterval = vi.spyOn(globalThis, 'setInterval');
  start(variables, ['metrics']);
  expect(setInterval.mock.calls.map(([, delay]) => delay)).toEqual([milliseconds]);
});

test('An outgoing call has a span, and the headers of the call do not contain the ids of the trace', async () => {
  const received: IncomingHttpHeaders[] = [];
  const server = createServer(({ headers }, response) => {
    received.push(headers);
    response.end();
  });
  const port = await listen(server);
  onTestFinished(() => close(server));
  const telemetry = start();
  // By default, @vercel/otel adds the ids to calls to the host name `localhost`. The test calls this host name, so it fails
  // unless the service turns the default off.
  const call = () => fetch(`http://localhost:${port}/alice`).then((response) => response.text());
  await telemetry.withSpan('register', call, () => 'created');
  await expect
    .poll(async () => {
      await telemetry.flush();
      return receiver.spans().map(({ name }) => name);
    })
    .toContain('fetch GET');
  expect(received.map(({ traceparent }) => traceparent)).toEqual([undefined]);
});

test('An export that gets no response fails after 5 s and is logged', async () => {
  receiver.treat('hang');
  const telemetry = start({ OTEL_BSP_SCHEDULE_DELAY: '100' }, ['traces']);
  await guard(telemetry);
  await vi.advanceTimersByTimeAsync(100 + 4_999);
  expect(warn).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(warn).toHaveBeenCalledExactlyOnceWith({}, 'telemetry could not be sent');
});

test('Errors of OpenTelemetry are logged at most once a minute, without their messages. Warnings and lower levels of OpenTelemetry are not logged', () => {
  start();
  for (const level of ['verbose', 'debug', 'info', 'warn'] as const) diag[level]('message of alice');
  expect(warn).not.toHaveBeenCalled();
  diag.error('message of alice');
  diag.error('message of alice');
  expect(warn).toHaveBeenCalledExactlyOnceWith({}, 'telemetry could not be sent');
});

test('flush() resolves after 1.5 s if the collector does not respond', async () => {
  receiver.treat('hang');
  const telemetry = start();
  await guard(telemetry);
  const flushed = vi.fn();
  void telemetry.flush().then(flushed);
  await vi.advanceTimersByTimeAsync(1_499);
  expect(flushed).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(flushed).toHaveBeenCalledExactlyOnceWith(undefined);
});

test('flush() resolves if the collector is not reachable', async () => {
  await receiver.stop();
  const telemetry = start();
  await guard(telemetry);
  const flushed = telemetry.flush();
  await expect.poll(() => warn.mock.calls).toEqual([[{}, 'telemetry could not be sent']]);
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

test.each([
  ['recordRequest()', (telemetry: Telemetry) => telemetry.recordRequest(request)],
  ['recordPageUser()', (telemetry: Telemetry) => telemetry.recordPageUser({ caller: 'created' })],
])('On Vercel, the function stays alive after %s until the metrics are exported', async (_what, record) => {
  const promises = stubVercel();
  record(start({ VERCEL: '1' }, ['metrics']));
  expect(promises).toHaveLength(1);
  await Promise.all(promises);
  expect(receiver.calls).toEqual(['/v1/metrics application/json']);
});

test('On Vercel, 50 concurrent requests cause fewer than 5 exports, and the exported metrics count all 50 requests', async () => {
  const promises = stubVercel();
  const telemetry = start({ VERCEL: '1' }, ['metrics']);
  for (let count = 0; count < 50; count += 1) telemetry.recordRequest(request);
  await Promise.all(promises);
  expect(points('http.server.request.duration')).toEqual([['GET', '/users/v1/me', 200, 50]]);
  expect(receiver.calls.length).toBeLessThan(5);
});

test('On Vercel, the function stays alive for at most 1.5 s if the collector does not respond', async () => {
  const promises = stubVercel();
  receiver.treat('hang');
  const telemetry = start({ VERCEL: '1' }, ['metrics']);
  telemetry.recordRequest(request);
  await vi.advanceTimersByTimeAsync(1_500);
  expect(await Promise.all(promises)).toEqual([undefined]);
});

test('On Vercel, the function does not stay alive for metrics if there is no endpoint for metrics', () => {
  const promises = stubVercel();
  start({ VERCEL: '1' }, ['traces']).recordRequest(request);
  expect(promises).toEqual([]);
});

test('Outside of Vercel, a request does not export the metrics', () => {
  const promises = stubVercel();
  start().recordRequest(request);
  expect(promises).toEqual([]);
});

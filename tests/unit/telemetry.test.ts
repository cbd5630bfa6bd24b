import { afterEach, expect, test, vi } from 'vitest';
import { log } from '#lib/log';
import { processState } from '#lib/process-state';
import { telemetrySettings } from '#lib/telemetry/settings';
import { enableTelemetry, type Telemetry, telemetry, withSpan } from '#lib/telemetry/with-span';

const state = processState('telemetry', (): { current?: Telemetry | undefined } => ({}));
afterEach(() => {
  state.current = undefined;
});

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.example:4318/otlp/' };
const BOTH = {
  traces: 'https://collector.example:4318/otlp/v1/traces',
  metrics: 'https://collector.example:4318/otlp/v1/metrics',
};

test.each<[Record<string, string>, object | undefined]>([
  [{}, undefined],
  [{ OTEL_SERVICE_NAME: 'a' }, undefined],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, undefined],
  [ENDPOINT, BOTH],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'false' }, BOTH],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: '' }, BOTH],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }, undefined],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'True' }, undefined],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'otlp' }, BOTH],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }, { metrics: BOTH.metrics }],
  [{ ...ENDPOINT, OTEL_METRICS_EXPORTER: 'none' }, { traces: BOTH.traces }],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' }, undefined],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'zipkin' }, { metrics: BOTH.metrics }],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a/traces' }, { traces: 'http://a/traces' }],
  [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://a/m' }, { metrics: 'http://a/m' }],
  [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: ' http://a/m ' }, { metrics: 'http://a/m' }],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a//' },
    { traces: 'http://a/v1/traces', metrics: 'http://a/v1/metrics' },
  ],
  [
    { ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a/traces' },
    { ...BOTH, traces: 'http://a/traces' },
  ],
])(
  'telemetrySettings() converts the variables %j to the settings %j (undefined: telemetry is disabled)',
  (variables, settings) => {
    expect(telemetrySettings(variables)).toEqual(settings);
  },
);

test.each(['grpc://token@a', 'git+https://token@a', 'a:4318'])(
  'The invalid OTLP endpoint %s for traces disables the export of traces, and the warning contains `traces` but not the endpoint',
  (endpoint) => {
    const warn = vi.spyOn(log, 'warn').mockReturnValue();
    const metrics = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://a/m' };
    expect(telemetrySettings({ ...metrics, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint })).toEqual({
      metrics: 'http://a/m',
    });
    expect(warn.mock.calls).toEqual([
      [{ signal: 'traces' }, 'the OTLP endpoint is not an http(s):// URL: the signal is disabled'],
    ]);
    warn.mockRestore();
  },
);

test('If telemetry is disabled, withSpan() returns the promise of the work and does not call `outcomeOf`', () => {
  const promise = Promise.resolve('done');
  const outcomeOf = vi.fn();
  expect(withSpan('guard', () => promise, outcomeOf)).toBe(promise);
  expect(outcomeOf).not.toHaveBeenCalled();
});

test('After enableTelemetry(), withSpan() runs the work in a span, and the log can read the ids of the span', async () => {
  const enabled: Telemetry = {
    withSpan: vi.fn((_name, work) => work()),
    recordRequest: vi.fn(),
    recordPageUser: vi.fn(),
    recordEvent: vi.fn(),
    breakerOpened: vi.fn(),
    breakerClosed: vi.fn(),
    spanIds: vi.fn(() => undefined),
    flush: async () => undefined,
  };
  expect(telemetry()).toBeUndefined();
  enableTelemetry(enabled);
  expect(telemetry()).toBe(enabled);
  const work = async () => 'done';
  const outcomeOf = () => 'passed' as const;
  expect(await withSpan('guard', work, outcomeOf)).toBe('done');
  expect(enabled.withSpan).toHaveBeenCalledExactlyOnceWith('guard', work, outcomeOf);
  // tests/unit/log.test.ts checks that log lines contain the ids that `spanIds()` returns.
  expect(processState('trace', () => ({}))).toEqual({ spanIds: enabled.spanIds });
});

import { expect, test, vi } from 'vitest';
import { log } from '#lib/log';
import { telemetrySettings } from '#lib/telemetry/settings';
import { withSpan } from '#lib/telemetry/with-span';

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

test('A malformed OTLP endpoint for traces disables the export of traces. The warning contains the word traces, but not the endpoint', () => {
  const warn = vi.spyOn(log, 'warn').mockReturnValue();
  expect(telemetrySettings({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'grpc://token@a' })).toBeUndefined();
  expect(JSON.stringify(warn.mock.calls)).toContain('traces');
  expect(JSON.stringify(warn.mock.calls)).not.toContain('token');
  warn.mockRestore();
});

test('If telemetry is disabled, withSpan() returns the promise that `work` returns and does not call `outcomeOf`', () => {
  const work = Promise.resolve('done');
  const outcomeOf = vi.fn();
  expect(withSpan('guard', () => work, outcomeOf)).toBe(work);
  expect(outcomeOf).not.toHaveBeenCalled();
});

import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { log } from '#lib/base/log';
import { withSpan } from '#lib/base/telemetry';
import { telemetrySettings } from '#lib/telemetry/settings';

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
    const warn = vi.spyOn(log, 'warn').mockReturnValue();
    expect(telemetrySettings({ ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint })).toEqual(METRICS);
    const message = 'the OTLP endpoint is not an http(s):// URL: the signal is disabled';
    expect(warn.mock.calls).toEqual([[{ signal: 'traces' }, message]]);
    warn.mockRestore();
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

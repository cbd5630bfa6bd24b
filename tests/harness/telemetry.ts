import type { OtlpReceiver, ReceivedMetric } from './dependencies/otlp-receiver';
import { deliver, me, register, tokenFor, userCreated } from './requests';
import type { TestService } from './service';

/** Returns environment variables that enable telemetry, export it as JSON to the receiver and shorten the export intervals. */
export const otelVariables = ({ url }: OtlpReceiver): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_BSP_SCHEDULE_DELAY: '100',
  OTEL_METRIC_EXPORT_INTERVAL: '1000',
});

/** Sends requests that update every metric of the service at least once. */
export async function emitAllMetrics({ url, idp }: Pick<TestService, 'url' | 'idp'>): Promise<void> {
  const token = tokenFor(idp, 'user_telemetry');
  await me(url, token);
  await me(url, token);
  await me(url, 'no token');
  await register(url, token, { identityProviderUserId: 'user_telemetry_registered' });
  await register(url, token, { identityProviderUserId: 'user_telemetry' });
  await deliver(url, JSON.stringify({ ...JSON.parse(userCreated('user_announced')), timestamp: Date.now() }));
}

const UNITS: Readonly<Record<string, string>> = { s: 'seconds', ms: 'milliseconds' };

/**
 * Returns the Prometheus names of a metric. Source:
 * https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/.
 */
function prometheusNames({ name, unit, kind }: Pick<ReceivedMetric, 'name' | 'unit' | 'kind'>) {
  const plain = [name.replaceAll(/[^a-zA-Z0-9_:]/g, '_'), UNITS[unit]].filter(Boolean).join('_');
  if (kind === 'histogram') return ['bucket', 'count', 'sum'].map((part) => `${plain}_${part}`);
  return [kind === 'counter' ? `${plain}_total` : plain];
}

/** Returns a Markdown table of metrics. docs/telemetry.md must contain this table. */
export function metricsTable(metrics: readonly ReceivedMetric[]): string {
  const rows = metrics.map((metric) => {
    const attributes = new Set(metric.points.flatMap((point) => Object.keys(point.attributes)));
    const names = [...attributes].sort().map((name) => `\`${name}\``);
    const cells = [
      `\`${metric.name}\``,
      metric.kind,
      `\`${metric.unit}\``,
      names.join(', ') || '–',
      metric.description,
      prometheusNames(metric)
        .map((name) => `\`${name}\``)
        .join(', '),
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return [
    '| Metric | Kind | Unit | Attributes | Description | In Prometheus |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

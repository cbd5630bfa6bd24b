import type { OtlpReceiver } from './dependencies/otlp-receiver';

/** Returns environment variables that export telemetry to the receiver at short intervals. */
export const otelVariables = ({ url }: OtlpReceiver): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_BSP_SCHEDULE_DELAY: '100',
  OTEL_METRIC_EXPORT_INTERVAL: '1000',
});

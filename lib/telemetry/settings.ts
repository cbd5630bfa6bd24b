import { log } from '../base/log';

type Variables = Readonly<Record<string, string | undefined>>;

/** The signals that are exported. */
export interface TelemetrySettings {
  readonly traces: boolean;
  readonly metrics: boolean;
}

function isEnabled(signal: 'TRACES' | 'METRICS', variables: Variables): boolean {
  const given = (name: string) => variables[`OTEL_${name}`]?.trim() ?? '';
  const endpoint = given(`EXPORTER_OTLP_${signal}_ENDPOINT`) || given('EXPORTER_OTLP_ENDPOINT');
  if (endpoint === '' || !['', 'otlp'].includes(given(`${signal}_EXPORTER`))) return false;
  if (/^https?:/.test(endpoint) && URL.canParse(endpoint)) return true;
  log.warn(
    { signal: signal.toLowerCase() },
    'the OTLP endpoint is not an http(s):// URL: the signal is disabled',
  );
  return false;
}

/**
 * Returns the signals that the standard OpenTelemetry variables enable, or undefined if there is none. A signal is enabled if
 * there is an endpoint for it, unless `OTEL_SDK_DISABLED` is `true` or the exporter of the signal is not `otlp`. Logs a warning
 * for an endpoint that is not a URL.
 */
export function telemetrySettings(variables: Variables): TelemetrySettings | undefined {
  if (variables['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return undefined;
  const settings = { traces: isEnabled('TRACES', variables), metrics: isEnabled('METRICS', variables) };
  return settings.traces || settings.metrics ? settings : undefined;
}

import { log } from '../log';

type Variables = Readonly<Record<string, string | undefined>>;

/** Where each signal goes; absent: it is not asked for. */
export interface TelemetrySettings {
  readonly traces?: string;
  readonly metrics?: string;
}

const isAddress = (value: string) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);

function addressOf(signal: 'TRACES' | 'METRICS', variables: Variables): string | undefined {
  const given = (name: string) => variables[name]?.trim() ?? '';
  const exporter = given(`OTEL_${signal}_EXPORTER`);
  if (exporter !== '' && exporter !== 'otlp') return undefined;
  const common = given('OTEL_EXPORTER_OTLP_ENDPOINT').replace(/\/+$/, '');
  const address =
    given(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`) || (common && `${common}/v1/${signal.toLowerCase()}`);
  if (address === '' || isAddress(address)) return address || undefined;
  log.warn({ signal: signal.toLowerCase() }, 'the OTLP endpoint is no http(s):// URL: nothing is sent');
  return undefined;
}

/**
 * What the standard variables ask for; undefined for nothing. An endpoint of OTLP turns telemetry on,
 * `OTEL_SDK_DISABLED=true` turns it off. A malformed endpoint stops no start: it is told, and nothing is sent.
 */
export function telemetrySettings(variables: Variables): TelemetrySettings | undefined {
  if (variables['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return undefined;
  const traces = addressOf('TRACES', variables);
  const metrics = addressOf('METRICS', variables);
  if (traces === undefined && metrics === undefined) return undefined;
  return { ...(traces ? { traces } : {}), ...(metrics ? { metrics } : {}) };
}

import { log } from '../log';

type Variables = Readonly<Record<string, string | undefined>>;

/** The OTLP endpoint of each enabled signal (traces or metrics). */
export interface TelemetrySettings {
  readonly traces?: string;
  readonly metrics?: string;
}

const isAddress = (value: string) => URL.canParse(value) && /^https?:/.test(new URL(value).protocol);

function addressOf(signal: 'TRACES' | 'METRICS', variables: Variables): string | undefined {
  const given = (name: string) => variables[name]?.trim() ?? '';
  const exporter = given(`OTEL_${signal}_EXPORTER`);
  if (exporter !== '' && exporter !== 'otlp') return undefined;
  const common = given('OTEL_EXPORTER_OTLP_ENDPOINT').replace(/\/+$/, '');
  const address =
    given(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`) || (common && `${common}/v1/${signal.toLowerCase()}`);
  if (address === '' || isAddress(address)) return address || undefined;
  log.warn(
    { signal: signal.toLowerCase() },
    'the OTLP endpoint is not an http(s):// URL: the signal is disabled',
  );
  return undefined;
}

/**
 * Returns the settings from the standard OpenTelemetry variables, or undefined if no signal is enabled. A signal is enabled if
 * it has an OTLP endpoint, either its own or the common one, except in these cases:
 * - `OTEL_SDK_DISABLED` is `true`.
 * - The variable for the exporter of the signal has a value other than `otlp`.
 * - The endpoint is malformed. The function then logs a warning.
 */
export function telemetrySettings(variables: Variables): TelemetrySettings | undefined {
  if (variables['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return undefined;
  const traces = addressOf('TRACES', variables);
  const metrics = addressOf('METRICS', variables);
  if (traces === undefined && metrics === undefined) return undefined;
  return { ...(traces ? { traces } : {}), ...(metrics ? { metrics } : {}) };
}

import { randomUUID } from 'node:crypto';
import { diag, metrics, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { waitUntil } from '@vercel/functions';
import { registerOTel } from '@vercel/otel';
import { rateLimitedWarning } from '../base/log';
import { withTimeout } from '../base/timeout';
import { instruments } from './metrics';
import type { Telemetry } from './port';
import type { TelemetrySettings } from './settings';
import { redactingExporter, registerRoute, SCOPE } from './spans';

/** Maximum delay that a flush adds before a Vercel function is suspended or a process exits. */
const FLUSH_MS = 1_500;

/** Logs failed exports at most once a minute. Omits the message, which may contain a URL or a header. */
function warnOfFailedExports(): void {
  const warn = rateLimitedWarning('telemetry could not be sent');
  const ignore = () => undefined;
  diag.setLogger({ error: () => warn(), warn: ignore, info: ignore, debug: ignore, verbose: ignore });
}

/** Resolves when `work` settles, or after FLUSH_MS. */
const withFlushTimeout = (work: Promise<unknown>): Promise<void> =>
  withTimeout(FLUSH_MS, work).then(
    () => undefined,
    () => undefined,
  );

/** Starts OpenTelemetry for the signals that the settings enable. lib/telemetry/spans.ts redacts the spans. */
export function startTelemetry(settings: TelemetrySettings): Telemetry {
  // Any value of this variable, even `false`, disables @vercel/otel. lib/telemetry/settings.ts has already read the value.
  delete process.env['OTEL_SDK_DISABLED'];
  const runsOnVercel = process.env['VERCEL'] !== undefined;
  warnOfFailedExports();
  // The exporters read their endpoints and headers from the standard variables.
  const processor = settings.traces
    ? new BatchSpanProcessor(redactingExporter(new OTLPTraceExporter()))
    : undefined;
  const reader = settings.metrics
    ? new PeriodicExportingMetricReader({
        exporter: new OTLPMetricExporter(),
        exportIntervalMillis: Number(process.env['OTEL_METRIC_EXPORT_INTERVAL']) || 60_000,
      })
    : undefined;
  registerOTel({
    serviceName: SCOPE,
    // @vercel/otel reports Vercel as the platform everywhere. The two undefined attributes prevent this outside Vercel.
    attributes: {
      'service.instance.id': randomUUID(),
      ...(runsOnVercel ? {} : { 'cloud.provider': undefined, 'vercel.runtime': undefined }),
    },
    spanProcessors: processor ? [processor] : [],
    ...(processor ? {} : { traceSampler: 'always_off' }),
    ...(reader ? { metricReaders: [reader] } : {}),
    // By default, @vercel/otel replaces `fetch` and adds the ids of traces to calls of other services.
    instrumentations: [],
  });
  const tracer = trace.getTracer(SCOPE);
  const recorder = instruments(metrics.getMeter(SCOPE));
  /**
   * Exports the metrics before Vercel suspends the function, because the timer of the reader then stops. For spans,
   * @vercel/otel does the same. Calls of `forceFlush` during an export share one later export.
   */
  const exportWhileAwake = () => {
    if (runsOnVercel && reader) waitUntil(withFlushTimeout(reader.forceFlush()));
  };

  return {
    withSpan: (name, work, outcomeOf) =>
      tracer.startActiveSpan(name, async (span) => {
        const started = performance.now();
        const end = (outcome: string) => {
          recorder.recordSpan(name, outcome, performance.now() - started);
          span.setAttribute('identity_link.outcome', outcome).end();
        };
        try {
          const result = await work();
          end(outcomeOf(result));
          return result;
        } catch (error) {
          span.setStatus({ code: SpanStatusCode.ERROR });
          end('failed');
          throw error;
        }
      }),
    recordRequest(request) {
      recorder.recordRequest(request);
      registerRoute(request.route);
      exportWhileAwake();
    },
    recordPageUser(fields) {
      recorder.recordPageUser(fields);
      exportWhileAwake();
    },
    breakerOpened: () => recorder.addOpenBreakers(1),
    breakerClosed: () => recorder.addOpenBreakers(-1),
    spanIds() {
      const span = trace.getActiveSpan()?.spanContext();
      if (!span || !(span.traceFlags & TraceFlags.SAMPLED)) return undefined;
      return { trace_id: span.traceId, span_id: span.spanId };
    },
    flush: () => withFlushTimeout(Promise.all([processor?.forceFlush(), reader?.forceFlush()])),
  };
}

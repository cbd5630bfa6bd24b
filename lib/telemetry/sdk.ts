import { randomUUID } from 'node:crypto';
import { DiagLogLevel, diag, metrics, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { parseKeyPairsIntoRecord } from '@opentelemetry/core';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { waitUntil } from '@vercel/functions';
import { OTLPHttpJsonTraceExporter, OTLPHttpProtoTraceExporter, registerOTel } from '@vercel/otel';
import { withTimeout } from '../concurrency/with-timeout';
import { rateLimitedWarning } from '../log';
import { instruments } from './metrics';
import type { TelemetrySettings } from './settings';
import { redactingExporter, registerRoute, SCOPE } from './spans';
import type { Telemetry } from './with-span';

/** How long one export may take. */
const EXPORT_MS = 5_000;
/** How long what waits for a flush may be kept: a function that is to be suspended, a process that is to end. */
const FLUSH_MS = 1_500;

/** Says that an exporter fails, at most once a minute; its own words may quote an address or a header. */
function warnOfFaults(): void {
  const warn = rateLimitedWarning('telemetry could not be sent');
  const ignore = () => undefined;
  diag.setLogger(
    { error: () => warn(), warn: ignore, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
  );
}

function spanProcessor(url: string): BatchSpanProcessor {
  const variable = (name: string) => process.env[`OTEL_EXPORTER_OTLP_${name}`];
  const headers = {
    ...parseKeyPairsIntoRecord(variable('HEADERS')),
    ...parseKeyPairsIntoRecord(variable('TRACES_HEADERS')),
  };
  const protocol = variable('TRACES_PROTOCOL') ?? variable('PROTOCOL');
  const Exporter = protocol === 'http/json' ? OTLPHttpJsonTraceExporter : OTLPHttpProtoTraceExporter;
  return new BatchSpanProcessor(redactingExporter(new Exporter({ url, headers })), {
    exportTimeoutMillis: EXPORT_MS,
  });
}

function metricReader(url: string): PeriodicExportingMetricReader {
  const interval = Number(process.env['OTEL_METRIC_EXPORT_INTERVAL']) || 60_000;
  return new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ url }),
    exportIntervalMillis: interval,
    exportTimeoutMillis: Math.min(interval, EXPORT_MS),
  });
}

/** Resolves when the work is done, has failed, or has taken too long for those who wait. */
const bounded = (work: Promise<unknown>): Promise<void> =>
  withTimeout(FLUSH_MS, work).then(
    () => undefined,
    () => undefined,
  );

/** Starts the SDK with what the settings ask for; spans leave as lib/telemetry/spans.ts lets them. */
export function startTelemetry({ traces, metrics: metricsUrl }: TelemetrySettings): Telemetry {
  // Any value of it disables the library, also `false`.
  delete process.env['OTEL_SDK_DISABLED'];
  // A function is suspended between requests, and with it the timer by which metrics leave.
  const isSuspended = process.env['VERCEL'] !== undefined;
  warnOfFaults();
  const processor = traces === undefined ? undefined : spanProcessor(traces);
  const reader = metricsUrl === undefined ? undefined : metricReader(metricsUrl);
  registerOTel({
    serviceName: 'identity-link',
    // The library says that everything runs at the platform of its makers.
    attributes: {
      'service.instance.id': randomUUID(),
      ...(isSuspended ? {} : { 'cloud.provider': undefined, 'vercel.runtime': undefined }),
    },
    spanProcessors: processor ? [processor] : [],
    ...(processor ? {} : { traceSampler: 'always_off', instrumentations: [] }),
    ...(reader ? { metricReaders: [reader] } : {}),
    instrumentationConfig: {
      fetch: {
        // What a caller's headers say is not passed on.
        dontPropagateContextUrls: ['*'],
      },
    },
  });
  const tracer = trace.getTracer(SCOPE);
  const told = instruments(metrics.getMeter(SCOPE));

  return {
    withSpan: (name, work, outcomeOf) =>
      tracer.startActiveSpan(name, async (span) => {
        const started = performance.now();
        const end = (outcome: string) => {
          told.step(name, outcome, performance.now() - started);
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
    answered(answer) {
      told.answered(answer);
      registerRoute(answer.route);
      // The library does the same for spans. Answers that come meanwhile share one delivery.
      if (isSuspended && reader) waitUntil(bounded(reader.forceFlush()));
    },
    eventHandled: told.eventHandled,
    breakerOpened: () => told.breaker(1),
    breakerClosed: () => told.breaker(-1),
    spanIds() {
      const span = trace.getActiveSpan()?.spanContext();
      if (!span || !(span.traceFlags & TraceFlags.SAMPLED)) return undefined;
      return { trace_id: span.traceId, span_id: span.spanId };
    },
    flush: () => bounded(Promise.all([processor?.forceFlush(), reader?.forceFlush()])),
  };
}

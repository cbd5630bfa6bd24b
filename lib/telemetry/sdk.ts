import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import {
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { AlwaysOffSampler, BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { waitUntil } from '@vercel/functions';
import { rateLimitedWarning } from '../base/log';
import type { Telemetry } from '../base/telemetry';
import { withTimeout } from '../core/async';
import { instruments } from './metrics';
import type { TelemetrySettings } from './settings';

/** The default service name, and the instrumentation scope of spans and metrics. */
const SCOPE = 'identity-link';
/** Maximum delay that a flush adds before a Vercel function is suspended or a process exits. */
const FLUSH_MS = 1_500;

const ignore = () => undefined;

/** Logs failed exports at most once a minute. Omits the message, which may contain a URL or a header. */
function warnOfFailedExports(): void {
  const warn = rateLimitedWarning('telemetry could not be sent');
  diag.setLogger({ error: () => warn(), warn: ignore, info: ignore, debug: ignore, verbose: ignore });
}

/** Describes this process. The standard variables have precedence. */
const describeProcess = (env: NodeJS.ProcessEnv) =>
  defaultResource()
    .merge(
      resourceFromAttributes({
        'service.name': SCOPE,
        'service.instance.id': randomUUID(),
        'cloud.provider': env['VERCEL_ENV'] && 'vercel',
        'cloud.region': env['VERCEL_REGION'],
        'deployment.environment.name': env['VERCEL_ENV'],
        'deployment.id': env['VERCEL_DEPLOYMENT_ID'],
        'vcs.ref.head.revision': env['VERCEL_GIT_COMMIT_SHA'],
      }),
    )
    .merge(detectResources({ detectors: [envDetector] }));

/** Opens the enabled signals. The exporters and the sampler read their settings from the standard variables. */
function openSignals({ traces, metrics }: TelemetrySettings) {
  const resource = describeProcess(process.env);
  const processor = traces ? new BatchSpanProcessor(new OTLPTraceExporter()) : undefined;
  const exportIntervalMillis = Number(process.env['OTEL_METRIC_EXPORT_INTERVAL']) || 60_000;
  const reader = metrics
    ? new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter(), exportIntervalMillis })
    : undefined;
  const tracing = processor ? { resource, spanProcessors: [processor] } : { sampler: new AlwaysOffSampler() };
  const meters = new MeterProvider({ resource, readers: reader ? [reader] : [] });
  const exports = () => Promise.all([processor?.forceFlush(), reader?.forceFlush()]);
  return {
    tracer: new BasicTracerProvider(tracing).getTracer(SCOPE),
    recorder: instruments(meters.getMeter(SCOPE)),
    flush: () => withTimeout(FLUSH_MS, exports()).then(ignore, ignore),
  };
}

/**
 * Starts OpenTelemetry for the signals that the settings enable. Sets no global provider, so Next.js and other libraries record
 * no spans: their names and attributes contain URLs, headers and messages.
 */
export function startTelemetry(settings: TelemetrySettings): Telemetry {
  warnOfFailedExports();
  const { tracer, recorder, flush } = openSignals(settings);
  const current = new AsyncLocalStorage<Span>();
  /** Exports before Vercel suspends the function, because timers then stop. Concurrent calls share an export. */
  const exportWhileAwake = () => {
    // The span of the request ends after this call.
    if (process.env['VERCEL'] !== undefined) waitUntil(setImmediate().then(flush));
  };

  return {
    withSpan(name, work, outcomeOf) {
      const parent = current.getStore();
      const context = parent ? trace.setSpan(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
      const span = tracer.startSpan(name, {}, context);
      const started = performance.now();
      const end = (outcome: string) => {
        recorder.recordSpan(name, outcome, performance.now() - started);
        span.setAttribute('identity_link.outcome', outcome).end();
      };
      return current.run(span, async () => {
        try {
          const result = await work();
          end(outcomeOf(result));
          return result;
        } catch (error) {
          span.setStatus({ code: SpanStatusCode.ERROR });
          end('failed');
          throw error;
        }
      });
    },
    async withRequest(headers, work) {
      // Omits the trace state of the client, which may contain personal data.
      const caller = parseTraceParent(headers.get('traceparent') ?? '');
      const context = caller
        ? trace.setSpanContext(ROOT_CONTEXT, { ...caller, isRemote: true })
        : ROOT_CONTEXT;
      const span = tracer.startSpan('request', { kind: SpanKind.SERVER }, context);
      try {
        return await current.run(span, work);
      } finally {
        span.end();
      }
    },
    recordRequest(request) {
      const attributes = recorder.recordRequest(request);
      const span = current.getStore()?.setAttributes(attributes);
      span?.updateName(`${attributes['http.request.method']} ${request.route}`);
      if (request.status >= 500) span?.setStatus({ code: SpanStatusCode.ERROR });
      exportWhileAwake();
    },
    recordPageUser(fields) {
      recorder.recordPageUser(fields);
      current.getStore()?.updateName('user');
      exportWhileAwake();
    },
    breakerOpened: () => recorder.addOpenBreakers(1),
    breakerClosed: () => recorder.addOpenBreakers(-1),
    spanIds() {
      const span = current.getStore()?.spanContext();
      if (!span || !(span.traceFlags & TraceFlags.SAMPLED)) return undefined;
      return { trace_id: span.traceId, span_id: span.spanId };
    },
    flush,
  };
}

import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { close, listen } from '../../../dev/system/listen';

const Attributes = z
  .array(z.object({ key: z.string(), value: z.record(z.string(), z.unknown()) }))
  .default([])
  .transform((list) => Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]])));

const Point = z.object({
  attributes: Attributes,
  /** A point of a sum or a gauge has either `asInt` or `asDouble`. */
  asInt: z.coerce.number().optional(),
  asDouble: z.number().optional(),
  /** Number of measurements. Only a point of a histogram has this field. */
  count: z.coerce.number().optional(),
});
const Points = z.object({ dataPoints: z.array(Point), isMonotonic: z.boolean().optional() });
const Metric = z.object({
  name: z.string(),
  description: z.string(),
  unit: z.string(),
  sum: Points.optional(),
  gauge: Points.optional(),
  histogram: Points.optional(),
});
const Span = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  attributes: Attributes,
  status: z.object({ code: z.number() }),
  events: z.array(z.unknown()).default([]),
});
const Resource = z.object({ attributes: Attributes });
const Batch = z.object({
  resourceMetrics: z
    .array(z.object({ resource: Resource, scopeMetrics: z.array(z.object({ metrics: z.array(Metric) })) }))
    .default([]),
  resourceSpans: z
    .array(
      z.object({
        resource: Resource,
        scopeSpans: z.array(z.object({ scope: z.object({ name: z.string() }), spans: z.array(Span) })),
      }),
    )
    .default([]),
});

interface ReceivedMetric {
  readonly name: string;
  readonly description: string;
  readonly unit: string;
  readonly kind: 'counter' | 'up-down counter' | 'gauge' | 'histogram';
  /** Points of this metric in its latest export. The value of a histogram point is the number of its measurements. */
  readonly points: readonly { readonly attributes: Record<string, unknown>; readonly value: number }[];
}

interface ReceivedSpan extends z.infer<typeof Span> {
  /** The instrumentation library that created the span. */
  readonly scope: string;
}

/** An OTLP/HTTP collector that stores the JSON bodies that it receives. */
export interface OtlpReceiver {
  /** Address of this receiver. A service whose OTEL_EXPORTER_OTLP_ENDPOINT has this value sends its telemetry here. */
  readonly url: string;
  /** Returns the bodies of all requests, one per line. */
  received(): string;
  /** Path, content type and authorization of each request. */
  readonly calls: readonly string[];
  resources(): Record<string, unknown>[];
  metrics(): ReceivedMetric[];
  spans(): ReceivedSpan[];
  /** Sets the behaviour for all further requests: `respond` sends a 200, `fail` a 400, and `hang` no response. */
  treat(treatment: 'respond' | 'hang' | 'fail'): void;
  stop(): Promise<void>;
}

const kindOf = ({ sum, gauge }: z.infer<typeof Metric>): ReceivedMetric['kind'] => {
  if (gauge) return 'gauge';
  if (!sum) return 'histogram';
  return sum.isMonotonic ? 'counter' : 'up-down counter';
};

/** Starts a receiver on a free port. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const bodies: string[] = [];
  const calls: string[] = [];
  let treatment: 'respond' | 'hang' | 'fail' = 'respond';
  const server = createServer(async (request, response) => {
    const { 'content-type': type, authorization } = request.headers;
    bodies.push(await text(request));
    calls.push([request.url, type, authorization].filter(Boolean).join(' '));
    if (treatment === 'hang') return;
    response.writeHead(treatment === 'fail' ? 400 : 200, { 'content-type': 'application/json' }).end('{}');
  });
  const port = await listen(server);
  const batches = () => bodies.map((body) => Batch.parse(JSON.parse(body)));
  return {
    url: `http://127.0.0.1:${port}`,
    received: () => bodies.join('\n'),
    calls,
    resources: () =>
      batches().flatMap(({ resourceMetrics, resourceSpans }) =>
        [...resourceMetrics, ...resourceSpans].map(({ resource }) => resource.attributes),
      ),
    metrics() {
      const last = new Map<string, ReceivedMetric>();
      const all = batches().flatMap(({ resourceMetrics }) =>
        resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics)),
      );
      for (const metric of all) {
        const { name, description, unit, sum, gauge, histogram } = metric;
        const { dataPoints } = sum ?? gauge ?? histogram ?? { dataPoints: [] };
        const points = dataPoints.map(({ attributes, asInt, asDouble, count }) => ({
          attributes,
          value: asInt ?? asDouble ?? count ?? Number.NaN,
        }));
        last.set(name, { name, description, unit, kind: kindOf(metric), points });
      }
      return [...last.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
    },
    spans: () =>
      batches().flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }) =>
          scopeSpans.flatMap(({ scope, spans }) => spans.map((span) => ({ ...span, scope: scope.name }))),
        ),
      ),
    treat(next) {
      treatment = next;
    },
    stop: () => close(server),
  };
}

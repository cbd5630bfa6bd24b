import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { close, listen } from '../../../dev/system/listen';

const Attributes = z
  .array(z.object({ key: z.string(), value: z.record(z.string(), z.unknown()) }))
  .default([])
  .transform((list) => Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]])));

/** The value of a histogram point is the number of its measurements. */
const Point = z
  .looseObject({ attributes: Attributes })
  .transform(({ attributes, asInt, asDouble, count }) => ({
    attributes,
    value: Number(asInt ?? asDouble ?? count),
  }));
const Points = z.object({ dataPoints: z.array(Point) }).transform(({ dataPoints }) => dataPoints);
const Metric = z
  .looseObject({ name: z.string(), unit: z.string().optional() })
  .transform(({ name, unit, sum, gauge, histogram }) => ({
    name,
    unit,
    points: Points.parse(sum ?? gauge ?? histogram),
  }));
const Span = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  attributes: Attributes,
  status: z.object({ code: z.number() }),
});
const Resource = z.object({ attributes: Attributes });
const Batch = z.object({
  resourceMetrics: z
    .array(z.object({ resource: Resource, scopeMetrics: z.array(z.object({ metrics: z.array(Metric) })) }))
    .default([]),
  resourceSpans: z
    .array(z.object({ resource: Resource, scopeSpans: z.array(z.object({ spans: z.array(Span) })) }))
    .default([]),
});

/** An OTLP/HTTP collector that stores the JSON bodies that it receives. */
export type OtlpReceiver = Awaited<ReturnType<typeof startOtlpReceiver>>;

/** Starts a receiver on a free port. */
export async function startOtlpReceiver() {
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
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    /** Environment variables of a service that sends its telemetry to this receiver at short intervals. */
    environment: {
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_BSP_SCHEDULE_DELAY: '100',
      OTEL_METRIC_EXPORT_INTERVAL: '1000',
    },
    /** Returns the bodies of all requests, one per line. */
    received: () => bodies.join('\n'),
    /** Path, content type and authorization of each request. */
    calls,
    resources: () =>
      batches().flatMap(({ resourceMetrics, resourceSpans }) =>
        [...resourceMetrics, ...resourceSpans].map(({ resource }) => resource.attributes),
      ),
    /** Returns the latest export of each metric, sorted by name. */
    metrics() {
      const all = batches().flatMap(({ resourceMetrics }) =>
        resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics)),
      );
      const latest = new Map(all.map((metric) => [metric.name, metric]));
      return [...latest.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
    },
    spans: () =>
      batches().flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
      ),
    /** Sets the behaviour for all further requests: `respond` sends a 200, `fail` a 400, and `hang` no response. */
    treat(next: typeof treatment) {
      treatment = next;
    },
    stop: () => close(server),
  };
}

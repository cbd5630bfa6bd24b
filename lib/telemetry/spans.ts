import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';

/** The instrumentation scope of the service's own spans and metrics. */
export const SCOPE = 'identity-link';

/** Patterns of routes, such as `/notes/v1/[noteId]`. `registerRoute` adds them. */
const routes = new Set<unknown>();

/** Allows the pattern of a route in exported spans. The pattern comes from the code, never from a request. */
export function registerRoute(route: string): void {
  routes.add(route);
}

const isMatch = (pattern: RegExp) => (value: unknown) => typeof value === 'string' && pattern.test(value);
/** Format of a span type, an error class, an outcome or a status. */
const isWord = isMatch(/^(?:[A-Za-z]{1,40}(?:\.[A-Za-z]{1,40})?|\d{3})$/);

/**
 * The attributes that are exported. All others are removed, because they may contain data of a client: URLs, query strings,
 * headers, messages. Next.js reports both patterns and paths in `http.route`.
 */
const CHECKS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ['http.method', isMatch(/^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/)],
  ['http.route', (value) => routes.has(value)],
  ['http.status_code', (value) => typeof value === 'number'],
  ['next.span_type', isWord],
  ['error.type', isWord],
  ['identity_link.outcome', isWord],
]);

function attributesOf({ attributes }: ReadableSpan): ReadableSpan['attributes'] {
  // `next.bubble` marks the span of a middleware that passed the request on. Next.js ends this span with status 200 before
  // there is a response.
  const isBubble = attributes['next.bubble'] === true;
  return Object.fromEntries(
    Object.entries(attributes).filter(
      ([name, value]) => CHECKS.get(name)?.(value) && !(isBubble && name === 'http.status_code'),
    ),
  );
}

/**
 * Returns the name under which a span is exported. Spans of this service keep their name. Spans of Next.js get a name from
 * checked attributes, because their own names contain URLs.
 */
function nameOf({ name, instrumentationScope: scope }: ReadableSpan, attributes: ReadableSpan['attributes']) {
  if (scope.name === SCOPE) return name;
  const { 'next.span_type': type = scope.name, 'http.method': method, 'http.route': route } = attributes;
  return type === 'BaseServer.handleRequest' ? [method, route].filter(Boolean).join(' ') : String(type);
}

const value = <T>(value: T) => ({ value });

/** Returns a view of a span without the attributes, names and texts that may contain data of a client. */
function redactSpan(span: ReadableSpan): ReadableSpan {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const attributes = attributesOf(span);
  return Object.create(span, {
    name: value(nameOf(span, attributes)),
    attributes: value(attributes),
    status: value({ code: span.status.code }),
    events: value([]),
    links: value([]),
    // Omits the trace state of the client.
    spanContext: value(() => ({ traceId, spanId, traceFlags })),
  });
}

/** Wraps an exporter, which then receives only redacted spans. */
export function redactingExporter(exporter: SpanExporter): SpanExporter {
  return {
    export: (spans, done) => exporter.export(spans.map(redactSpan), done),
    shutdown: () => exporter.shutdown(),
  };
}

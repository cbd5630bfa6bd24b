import { SpanKind } from '@opentelemetry/api';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import { API_ROOTS, PAGES } from '../routing/routes';

/** The instrumentation scope of the service's own spans and metrics. */
export const SCOPE = 'identity-link';

const METHOD = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/;
/** Returns a standard HTTP method unchanged, and `_OTHER` for any other text. */
export const methodOf = (method: string): string => (METHOD.test(method) ? method : '_OTHER');
/** Format of a span type, the name of a client, an error class, an outcome or a status. */
const WORD = /^(?:[A-Za-z]{1,40}(?:\.[A-Za-z]{1,40})?|\d{3})$/;
const HOST = /^[A-Za-z0-9.:[\]-]{1,255}$/;

/** First segments of the paths of this service. Next.js reports `_not-found` for other paths. */
const FIRST_SEGMENTS = new Set([...API_ROOTS, ...PAGES.map((page) => page.split('/')[1]), '_not-found']);

/** Patterns of routes, such as `/notes/v1/[noteId]`. `registerRoute` adds them. */
const routes = new Set<string>();

/** Allows the pattern of a route in exported spans. The pattern comes from the code, never from a request. */
export function registerRoute(route: string): void {
  routes.add(route);
}

/**
 * Returns the value of `http.route` for an exported span. Next.js reports both patterns and paths in this attribute. Returns a
 * registered pattern unchanged. For any other value, returns the first segment if it is in `FIRST_SEGMENTS`, otherwise `/`.
 */
function routeOf(path: string): string {
  if (routes.has(path)) return path;
  const [, first] = path.split('/', 2);
  return FIRST_SEGMENTS.has(first) ? `/${first}` : '/';
}

/** Returns the value that is exported, or undefined if the attribute is removed. */
type Check = (value: string) => string | undefined;

const matching =
  (pattern: RegExp): Check =>
  (value) =>
    pattern.test(value) ? value : undefined;

/**
 * The text attributes that are exported from all spans. Spans of outgoing calls also keep the attributes in `OUTGOING`. All
 * other text attributes, such as URLs, query strings, headers and messages, are removed.
 */
const TEXTS = new Map<string, Check>([
  ['http.method', methodOf],
  ['http.route', routeOf],
  ['http.client.name', matching(WORD)],
  ['next.span_type', matching(WORD)],
  ['error.type', matching(WORD)],
  ['identity_link.outcome', matching(WORD)],
]);
const NUMBERS = new Set(['http.status_code', 'http.response_time']);
/**
 * Attributes that are exported only from spans of outgoing calls. The span of an incoming request does not keep the host,
 * because the client chooses the host.
 */
const OUTGOING = new Map<string, Check>([
  ['net.peer.name', matching(HOST)],
  ['net.peer.port', matching(/^\d{1,5}$/)],
]);

type Kept = Record<string, string | number>;

function attributesOf({ kind, attributes }: ReadableSpan): Kept {
  const checks = kind === SpanKind.CLIENT ? new Map([...TEXTS, ...OUTGOING]) : TEXTS;
  // `next.bubble` marks the span of a middleware that passed the request on. Next.js ends this span with status 200 before
  // there is a response, so its numbers do not describe the response.
  const numbers = attributes['next.bubble'] === true ? new Set() : NUMBERS;
  const kept: Kept = {};
  for (const [name, value] of Object.entries(attributes)) {
    const checked = typeof value === 'string' ? checks.get(name)?.(value) : undefined;
    if (checked !== undefined) kept[name] = checked;
    if (typeof value === 'number' && numbers.has(name)) kept[name] = value;
  }
  return kept;
}

/**
 * Returns the name under which a span is exported. Spans that the code of this service creates keep their name. Spans of
 * Next.js and of the fetch instrumentation get a new name from checked attributes, because their own names contain URLs.
 */
function nameOf({ name, instrumentationScope }: ReadableSpan, attributes: Kept): string {
  if (instrumentationScope.name === SCOPE) return name;
  const { 'next.span_type': type, 'http.client.name': client, 'http.method': method } = attributes;
  if (type === 'BaseServer.handleRequest')
    return [method, attributes['http.route']].filter(Boolean).join(' ');
  return String(type ?? ([client, method].filter(Boolean).join(' ') || instrumentationScope.name));
}

/** Returns a copy of a span with its ids, its times and the allowed attributes, but without events, links and messages. */
function redactSpan(span: ReadableSpan): ReadableSpan {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const attributes = attributesOf(span);
  return {
    name: nameOf(span, attributes),
    kind: span.kind,
    spanContext: () => ({ traceId, spanId, traceFlags }),
    ...(span.parentSpanContext ? { parentSpanContext: span.parentSpanContext } : {}),
    startTime: span.startTime,
    endTime: span.endTime,
    duration: span.duration,
    ended: span.ended,
    status: { code: span.status.code },
    attributes,
    links: [],
    events: [],
    resource: span.resource,
    instrumentationScope: span.instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Wraps an exporter, which then receives only redacted spans. */
export function redactingExporter(exporter: SpanExporter): SpanExporter {
  return {
    export: (spans, done) => exporter.export(spans.map(redactSpan), done),
    shutdown: () => exporter.shutdown(),
  };
}

import { SpanKind } from '@opentelemetry/api';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import { API_ROOTS, PAGES } from '../routing/roots';

/** The instrumentation scope of the service's own spans and metrics. */
export const SCOPE = 'identity-link';

const METHOD = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/;
/** What is told of a request's method: whatever a caller makes up is one and the same. */
export const methodOf = (method: string): string => (METHOD.test(method) ? method : '_OTHER');
/** As code names things: a kind of span, a class of error, an outcome, a status. */
const WORD = /^(?:[A-Za-z]{1,40}(?:\.[A-Za-z]{1,40})?|\d{3})$/;
const HOST = /^[A-Za-z0-9.:[\]-]{1,255}$/;

/** With which an address of this service begins; the last two are the framework's way to say that there is none. */
const FIRST_SEGMENTS = new Set<string>(['', ...API_ROOTS, ...PAGES, 'sign-in', 'sign-up', '_not-found']);

/** The routes that have answered, by the names that the code gives them. */
const named = new Set<string>();

/** From now on spans may hold this name of a route, which is a folder's and never an address. */
export function registerRoute(route: string): void {
  named.add(route);
}

/** What may be told of a path: the framework gives the name of a route, or the address where it has none. */
function routeOf(path: string): string {
  if (named.has(path)) return path;
  const [, first = ''] = path.split('/', 2);
  return FIRST_SEGMENTS.has(first) ? `/${first}` : '/';
}

type Check = (value: string) => string | undefined;

const matching =
  (pattern: RegExp): Check =>
  (value) =>
    pattern.test(value) ? value : undefined;

/** Every text that leaves. Whatever is not in here stays: addresses, queries, headers, messages. */
const TEXTS: Readonly<Record<string, Check>> = {
  'http.method': methodOf,
  'http.route': routeOf,
  'http.client.name': matching(WORD),
  'next.span_type': matching(WORD),
  'error.type': matching(WORD),
  'identity_link.outcome': matching(WORD),
};
const NUMBERS = new Set(['http.status_code', 'http.response_time']);
/** Of a call that this service makes: of one that it gets, a host is what a header says. */
const OF_CALLS: Readonly<Record<string, Check>> = {
  'net.peer.name': matching(HOST),
  'net.peer.port': matching(/^\d{1,5}$/),
};

type Kept = Record<string, string | number>;

function attributesOf({ kind, attributes }: ReadableSpan): Kept {
  const checks = kind === SpanKind.CLIENT ? { ...TEXTS, ...OF_CALLS } : TEXTS;
  // Where the middleware hands a request on, the framework ends a span before there is an answer, and says 200.
  const numbers = attributes['next.bubble'] === true ? new Set() : NUMBERS;
  const kept: Kept = {};
  for (const [name, value] of Object.entries(attributes)) {
    const checked = typeof value === 'string' ? checks[name]?.(value) : undefined;
    if (checked !== undefined) kept[name] = checked;
    if (typeof value === 'number' && numbers.has(name)) kept[name] = value;
  }
  return kept;
}

/** The framework and the fetch instrumentation write addresses into names: they are made anew. */
function nameOf({ name, instrumentationScope }: ReadableSpan, attributes: Kept): string {
  if (instrumentationScope.name === SCOPE) return name;
  const { 'next.span_type': type, 'http.client.name': client, 'http.method': method } = attributes;
  if (type === 'BaseServer.handleRequest')
    return [method, attributes['http.route']].filter(Boolean).join(' ');
  return String(type ?? ([client, method].filter(Boolean).join(' ') || instrumentationScope.name));
}

/** What is left of a span: where it stands, how long it took, and the attributes above. No event, no link, no message. */
function discreetSpan(span: ReadableSpan): ReadableSpan {
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

/** Makes an exporter to which nothing of a request comes but what the lists above name. */
export function redactingExporter(exporter: SpanExporter): SpanExporter {
  return {
    export: (spans, done) => exporter.export(spans.map(discreetSpan), done),
    shutdown: () => exporter.shutdown(),
  };
}

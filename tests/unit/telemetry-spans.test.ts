import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { beforeEach, expect, test, vi } from 'vitest';
import { redactingExporter, registerRoute, SCOPE } from '#lib/telemetry/spans';

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({
  spanProcessors: [new SimpleSpanProcessor(redactingExporter(exporter))],
});
beforeEach(() => exporter.reset());

interface Given {
  /** The instrumentation library that creates the span. */
  readonly scope?: string;
  readonly name?: string;
  readonly kind?: SpanKind;
}

/** Ends a span with these attributes and returns the span that is exported. */
function exported(attributes: Record<string, unknown>, given: Given = {}): ReadableSpan | undefined {
  const { scope = 'next.js', name = 'GET /users/alice', kind = SpanKind.SERVER } = given;
  const span = provider.getTracer(scope).startSpan(name, { kind });
  for (const [key, value] of Object.entries(attributes)) Reflect.get(span, 'attributes')[key] = value;
  span.end();
  return exporter.getFinishedSpans().at(-1);
}

test('An exported span has the ids, the parent, the times, the kind and the status code of the original, but no message, event or link', () => {
  const tracer = provider.getTracer('next.js', '1.2.3');
  const parent = tracer.startSpan('parent');
  const span = tracer.startSpan(
    'child of alice',
    {
      kind: SpanKind.CLIENT,
      startTime: [1_700_000_000, 5],
      links: [{ context: parent.spanContext(), attributes: { name: 'alice' } }],
    },
    trace.setSpan(ROOT_CONTEXT, parent),
  );
  span.addEvent('alice');
  span.recordException(new Error('message of alice'));
  span.setStatus({ code: SpanStatusCode.ERROR, message: 'message of alice' });
  span.end([1_700_000_002, 7]);
  const [copy] = exporter.getFinishedSpans();
  expect(copy).toMatchObject({
    kind: SpanKind.CLIENT,
    startTime: [1_700_000_000, 5],
    endTime: [1_700_000_002, 7],
    duration: [2, 2],
    ended: true,
    instrumentationScope: { name: 'next.js', version: '1.2.3' },
    parentSpanContext: parent.spanContext(),
    status: { code: SpanStatusCode.ERROR },
    links: [],
    events: [],
  });
  expect(copy?.spanContext()).toEqual(span.spanContext());
  expect(copy?.resource.attributes).toHaveProperty('telemetry.sdk.name');
  expect(JSON.stringify(copy)).not.toContain('alice');
});

test('An exported root span has no parent', () => {
  expect(exported({})).not.toHaveProperty('parentSpanContext');
});

test.each<[Record<string, unknown>]>([
  [{ 'http.method': 'DELETE' }],
  [{ 'http.client.name': 'fetch' }],
  [{ 'next.span_type': 'BaseServer.handleRequest' }],
  [{ 'error.type': 'TypeError' }],
  [{ 'error.type': '500' }],
  [{ 'error.type': `${'a'.repeat(40)}.${'b'.repeat(40)}` }],
  [{ 'identity_link.outcome': 'passed' }],
  [{ 'http.status_code': 200, 'http.response_time': 12.5 }],
])('A span is exported with the attributes %j', (attributes) => {
  expect(exported(attributes)?.attributes).toStrictEqual(attributes);
});

test.each<[string, unknown]>([
  ['http.target', '/users/v1/me?token=secret'],
  ['constructor', 'alice'],
  ['error.type', 'alice@example.com'],
  ['error.type', 'two words'],
  ['error.type', 'a.b.c'],
  ['error.type', 'a'.repeat(41)],
  ['error.type', `a.${'b'.repeat(41)}`],
  ['error.type', '5000'],
  ['error.type', ''],
  ['http.client.name', 'alice@example.com'],
  ['next.span_type', 'alice@example.com'],
  ['identity_link.outcome', 'alice@example.com'],
  ['http.status_code', 'alice'],
  ['http.route', 7],
  ['http.request_content_length', 7],
  ['next.bubble', false],
  ['http.method', ['GET']],
])('A span is exported without the attribute %s: %j', (name, value) => {
  expect(exported({ [name]: value })?.attributes).toStrictEqual({});
});

test.each(['BREW', 'get', 'GET /users', 'FORGET', ''])(
  'A non-standard HTTP method is exported as `_OTHER`: "%s"',
  (method) => {
    expect(exported({ 'http.method': method })?.attributes).toStrictEqual({ 'http.method': '_OTHER' });
  },
);

test('The span of a middleware that passes the request on has no status and no response time', () => {
  const numbers = { 'http.status_code': 200, 'http.response_time': 1 };
  expect(exported({ ...numbers, 'next.bubble': true })?.attributes).toStrictEqual({});
  expect(exported({ ...numbers, 'next.bubble': false })?.attributes).toStrictEqual(numbers);
});

test.each([
  ['collector.example', '443'],
  ['[::1]', '65535'],
  ['h'.repeat(255), '1'],
])(
  'The span of an outgoing call is exported with its host and port. The span of an incoming request is exported without host and port: %s %s',
  (host, port) => {
    const peer = { 'net.peer.name': host, 'net.peer.port': port };
    const attributes = { ...peer, 'http.method': 'POST' };
    expect(exported(attributes, { kind: SpanKind.CLIENT })?.attributes).toStrictEqual(attributes);
    expect(exported(attributes)?.attributes).toStrictEqual({ 'http.method': 'POST' });
  },
);

test.each([
  ['net.peer.name', 'user@host'],
  ['net.peer.name', 'host/alice'],
  ['net.peer.name', ''],
  ['net.peer.name', 'h'.repeat(256)],
  ['net.peer.port', '443/alice'],
  ['net.peer.port', 'alice443'],
  ['net.peer.port', '123456'],
  ['net.peer.port', ''],
])('The span of an outgoing call is exported without a malformed host or port: %s %j', (name, value) => {
  expect(exported({ [name]: value }, { kind: SpanKind.CLIENT })?.attributes).toStrictEqual({});
});

test.each([
  ['/', '/'],
  ['/users', '/users'],
  ['/users/alice', '/users'],
  ['/webhooks/idp/v1/user-created', '/webhooks'],
  ['/sign-in/alice', '/sign-in'],
  ['/_not-found/page', '/_not-found'],
  ['/alice', '/'],
  ['/alice/users', '/'],
  ['/notes/v1/[noteId]', '/'],
  ['', '/'],
])(
  'An unregistered path is exported as its first segment if the service uses that segment, otherwise as a slash: "%s" as "%s"',
  (path, route) => {
    expect(exported({ 'http.route': path })?.attributes).toStrictEqual({ 'http.route': route });
  },
);

test('A registered route is exported unchanged', () => {
  const route = '/registered/v1/[id]';
  expect(exported({ 'http.route': route })?.attributes).toStrictEqual({ 'http.route': '/' });
  registerRoute(route);
  expect(exported({ 'http.route': route })?.attributes).toStrictEqual({ 'http.route': route });
});

test.each<[string, Record<string, string>]>([
  [
    'GET /users',
    { 'next.span_type': 'BaseServer.handleRequest', 'http.method': 'GET', 'http.route': '/users/alice' },
  ],
  ['POST', { 'next.span_type': 'BaseServer.handleRequest', 'http.method': 'POST' }],
  ['AppRender.getBodyResult', { 'next.span_type': 'AppRender.getBodyResult', 'http.method': 'GET' }],
  ['fetch GET', { 'http.client.name': 'fetch', 'http.method': 'GET' }],
  ['POST', { 'http.method': 'POST' }],
  ['next.js', {}],
])(
  'A span of a library is exported under the name "%s", which consists of exported attributes or is the name of the library: %j',
  (name, attributes) => {
    expect(exported(attributes)?.name).toBe(name);
  },
);

test('A span of this service keeps its name', () => {
  expect(SCOPE).toBe('identity-link');
  const attributes = { 'next.span_type': 'AppRender.getBodyResult' };
  expect(exported(attributes, { scope: 'identity-link', name: 'cache read' })?.name).toBe('cache read');
});

test('The exporter reports the export result and the shutdown error of the wrapped exporter', async () => {
  const done = vi.fn();
  redactingExporter({
    export: (_spans, report) => report({ code: 1 }),
    shutdown: async () => undefined,
  }).export([], done);
  expect(done).toHaveBeenCalledExactlyOnceWith({ code: 1 });
  const failing = redactingExporter({
    export: () => undefined,
    shutdown: () => Promise.reject(new Error('failed by a test')),
  });
  await expect(failing.shutdown()).rejects.toThrow('failed by a test');
});

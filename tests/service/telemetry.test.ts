import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { BUILD_FOLDER } from '../harness/build';
import { startOtlpReceiver } from '../harness/dependencies/otlp-receiver';
import { startTcpProxy } from '../harness/dependencies/tcp-proxy';
import { SECRET_KEY, SIGNING_SECRET } from '../harness/keys';
import {
  bearer,
  cookie,
  deliver,
  me,
  register,
  send,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../harness/requests';
import { startServiceProcess, startTestService } from '../harness/service';
import { emitAllMetrics, metricsTable, otelVariables } from '../harness/telemetry';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';

/** Returns a unique text that begins with `what`. */
const mark = (what: string) => `${what}${randomBytes(8).toString('hex')}`;

/** Private values in the requests of `hostileTraffic`. The service must not export any of them. */
const MARKS = {
  query: mark('query'),
  path: mark('path'),
  page: mark('page'),
  header: mark('header'),
  email: `${mark('ada')}@example.com`,
  body: mark('body'),
  identityProviderUserId: mark('user_'),
  registeredId: mark('user_'),
  announcedId: mark('user_'),
  eventType: mark('type'),
  messageId: mark('msg_'),
  badToken: mark('badToken'),
} as const;

/** Headers of a caller that has a trace of its own. */
const TRACE = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: `vendor=${MARKS.header}`,
  baggage: `user=${MARKS.header}`,
};

const receiver = stopAfterAll(await startOtlpReceiver());
const service = stopAfterAll(
  await startTestService({ environment: { ...otelVariables(receiver), OTEL_SDK_DISABLED: 'false' } }),
);
const { url, idp } = service;
const token = tokenFor(idp, MARKS.identityProviderUserId, { email: MARKS.email });
const userIds: string[] = [];
await emitAllMetrics(service);
await hostileTraffic();

/** Sends requests with a private value in each place that a caller controls. */
async function hostileTraffic(): Promise<void> {
  const query = `?token=${token}&email=${MARKS.email}&q=${MARKS.query}`;
  const headers = {
    'user-agent': MARKS.header,
    referer: `http://${MARKS.header}.example/`,
    'x-request-id': MARKS.header,
    'x-forwarded-host': `${MARKS.header}.example`,
    ...TRACE,
  };
  const { body } = await send(`${url}/users/v1/me${query}`, { headers: { ...headers, ...bearer(token) } });
  userIds.push(z.object({ userId: z.string() }).parse(body).userId);
  await send(`${url}/users/v1/me`, { headers: { ...headers, ...cookie(token) } });
  await me(url, `${MARKS.badToken}.${MARKS.badToken}.x`);
  for (const address of [
    ...['users', 'auth/v1', 'webhooks/idp/v1', 'sign-in', 'account', '_next/static'].map(
      (at) => `${at}/${MARKS.path}`,
    ),
    ...[MARKS.path, `[${MARKS.path}]`, `users/v1/[${MARKS.path}]`, `${MARKS.page}/${MARKS.path}`],
    ...['', 'sign-in', 'account', 'sign-up'],
  ]) {
    await send(`${url}/${address}${query}`, { headers: { ...headers, ...cookie(token) } });
  }
  await send(`${url}/users/v1/${MARKS.path}`, { method: 'DELETE', headers });
  await register(url, token, `{"${MARKS.body}"`);
  await register(url, token, { identityProviderUserId: MARKS.registeredId, email: MARKS.email });
  const event = JSON.stringify({ ...JSON.parse(userCreated(MARKS.announcedId)), note: MARKS.body });
  await deliver(url, event, signatureHeaders(event, { id: MARKS.messageId }));
  await deliver(url, event, { ...signatureHeaders(event), 'svix-signature': `v1,${MARKS.header}` });
  await deliver(url, JSON.stringify({ type: MARKS.eventType, data: { id: MARKS.announcedId } }));
  await deliver(url, JSON.stringify({ type: 7, note: MARKS.body }));
  await service.kv.proxy.treat('refuse');
  await me(url, token);
  await service.database.proxy.treat('refuse');
  await me(url, tokenFor(idp, `${MARKS.identityProviderUserId}2`));
  await service.database.proxy.treat('forward');
  for (let request = 0; request < 6; request += 1) await me(url, token);
  await service.kv.proxy.treat('forward');
}

const metric = (name: string) => receiver.metrics().find((each) => each.name === name);
/** Returns the values of the points of a metric. The key of a point is its attribute values, joined with spaces. */
const points = (name: string) =>
  Object.fromEntries(
    (metric(name)?.points ?? []).map(({ attributes, value }) => [Object.values(attributes).join(' '), value]),
  );

/** Resolves once the receiver has the telemetry of all requests above. */
async function allReceived(): Promise<void> {
  await expect.poll(() => points('identity_link.guard.requests')).toHaveProperty('failed');
  await expect.poll(() => points('identity_link.cache.breaker.open')).toEqual({ '': 1 });
  // Spans and metrics are exported independently of each other.
  const guarded = () => receiver.spans().filter(({ name }) => name === 'guard').length;
  const counted = () =>
    Object.values(points('identity_link.guard.requests')).reduce((sum, value) => sum + value, 0);
  await expect.poll(() => guarded() - counted()).toBe(0);
}

describe('Exported telemetry', () => {
  test('docs/telemetry.md contains the table of the exported metrics', async () => {
    await allReceived();
    expect(readFileSync('docs/telemetry.md', 'utf8')).toContain(metricsTable(receiver.metrics()));
  });

  test('The exported metrics describe the requests, cache operations, registrations and webhook events', async () => {
    await allReceived();
    expect(points('identity_link.guard.requests')).toEqual({
      passed: expect.any(Number),
      rejected: expect.any(Number),
      failed: expect.any(Number),
    });
    expect(Object.keys(points('identity_link.cache.operation.duration')).toSorted()).toEqual([
      ...['read error', 'read hit', 'read miss', 'write stored'],
    ]);
    expect(points('identity_link.registrations')).toEqual({
      'request created': 2,
      'request existing': expect.any(Number),
      'register created': 2,
      'register existing': 1,
      'webhook created': 2,
    });
    expect(points('identity_link.webhooks')).toEqual({
      'user.created acknowledged': 2,
      'other acknowledged': 1,
      'none rejected': 2,
    });
    expect(points('identity_link.webhook.event.age')).toEqual({ '': 1 });
    expect(points('identity_link.webhook.last_verified.age')['']).toBeGreaterThan(0);
    expect(points('http.server.request.duration')).toMatchObject({
      'GET /users/v1/me 500': expect.any(Number),
      'POST /webhooks/idp/v1/user-created 400': 2,
      'DELETE /users 404': 1,
    });
  });

  test('The attributes of metrics have only known values', async () => {
    await allReceived();
    const values = receiver
      .metrics()
      .flatMap((each) => each.points.flatMap(({ attributes }) => Object.entries(attributes)))
      .map(([name, value]) => `${name}=${value}`);
    const allowed = [
      /^http\.request\.method=(?:GET|POST|DELETE|_OTHER)$/,
      /^http\.response\.status_code=\d{3}$/,
      /^http\.route=\/(?:users|users\/v1\/me|auth|auth\/v1\/register|webhooks|webhooks\/idp\/v1\/user-created)?$/,
      /^identity_link\.outcome=(?:passed|rejected|failed|hit|miss|error|stored|created|existing|acknowledged)$/,
      /^identity_link\.cache\.operation=(?:read|write)$/,
      /^identity_link\.registration\.source=(?:request|register|webhook)$/,
      /^identity_link\.webhook\.type=(?:user\.created|other|none)$/,
      /^db\.client\.connection\.(?:pool\.name=users|state=(?:used|idle))$/,
    ];
    expect(values.length).toBeGreaterThan(30);
    expect(values.filter((value) => !allowed.some((pattern) => pattern.test(value)))).toEqual([]);
  });

  test('Each step of a request has a span with the outcome of the step, and a cache read belongs to the trace of its request', async () => {
    await allReceived();
    const own = receiver.spans().filter(({ scope }) => scope === 'identity-link');
    const seen = new Set(
      own.map(({ name, attributes }) => `${name}: ${attributes['identity_link.outcome']}`),
    );
    expect([...seen].toSorted()).toEqual([
      ...['cache read: error', 'cache read: hit', 'cache read: miss', 'cache write: stored'],
      ...['guard: failed', 'guard: passed', 'guard: rejected'],
      ...['register: created', 'register: existing', 'register: failed'],
      ...['verify webhook: rejected', 'verify webhook: verified'],
    ]);
    const traces = new Set(
      receiver.spans().flatMap(({ name, traceId }) => (name === 'GET /users/v1/me' ? [traceId] : [])),
    );
    expect(
      own.filter(({ name, traceId }) => name === 'cache read' && traces.has(traceId)).length,
    ).toBeGreaterThan(5);
  });

  test('A span of Next.js has the actual status of the response, or no status', async () => {
    await allReceived();
    const statuses = (route: string) =>
      new Set(
        receiver
          .spans()
          .flatMap(({ name, attributes }) => (name === route ? [attributes['http.status_code']] : [])),
      );
    expect(statuses('GET /users/v1/me')).toEqual(new Set([200, 401, 500]));
    expect(statuses('POST /webhooks/idp/v1/user-created')).toEqual(new Set([200, 400]));
    // `POST` is the span of the middleware. Next.js ends this span before there is a response, and sets its status to 200. The
    // service removes this status.
    expect(statuses('POST')).toEqual(new Set([undefined]));
  });

  test('The exported bytes contain no personal or secret value of a request and no secret of the service', async () => {
    await allReceived();
    const secrets = {
      ...MARKS,
      token,
      signatureOfTheToken: token.split('.')[2] ?? '',
      userId: userIds[0] ?? '',
      secretKey: SECRET_KEY,
      signingSecret: SIGNING_SECRET.replace('whsec_', ''),
      kvToken: service.environment['KV_REST_API_TOKEN'] ?? '',
      databaseUrl: service.environment['DATABASE_URL'] ?? '',
    };
    expect(Object.values(secrets).every((secret) => secret.length >= 16)).toBe(true);
    const received = receiver.received();
    expect(receiver.spans().length).toBeGreaterThan(200);
    expect(Object.entries(secrets).filter(([, secret]) => received.includes(secret))).toEqual([]);
    expect(received).not.toMatch(/@example\.com|eyJ[\w-]+\.|\?\w+=/);
  });

  test('An exported span has only allowed attributes, an allowed name and no events', async () => {
    await allReceived();
    const spans = receiver.spans();
    expect([...new Set(spans.flatMap(({ attributes }) => Object.keys(attributes)))].toSorted()).toEqual([
      ...[
        'error.type',
        'http.client.name',
        'http.method',
        'http.response_time',
        'http.route',
        'http.status_code',
      ],
      ...['identity_link.outcome', 'net.peer.name', 'net.peer.port', 'next.span_type'],
    ]);
    expect(spans.flatMap(({ events }) => events)).toEqual([]);
    const names =
      /^(?:[A-Za-z]+\.[A-Za-z]+|(?:http |fetch )?[A-Z]+(?: \/[a-z/0-9-]*)?|GET \/_not-found|guard|register|cache read|cache write|verify webhook)$/;
    expect(spans.filter(({ name }) => !names.test(name)).map(({ name }) => name)).toEqual([]);
  });

  test('The requests that export telemetry do not create spans', async () => {
    await allReceived();
    const { port } = new URL(receiver.url);
    expect(receiver.spans().filter(({ attributes }) => attributes['net.peer.port'] === port)).toEqual([]);
  });

  test('Outside of a cloud, the telemetry resource has a service name and an instance id, but no cloud provider', async () => {
    await allReceived();
    const [resource] = receiver.resources();
    expect(resource).toMatchObject({
      'service.name': 'identity-link',
      'service.instance.id': expect.stringMatching(/^[\da-f-]{36}$/),
    });
    expect(resource).not.toHaveProperty('cloud.provider');
  });

  test('A log line has the trace id and span id of an exported span', async () => {
    await allReceived();
    const Line = z.object({ trace_id: z.string(), span_id: z.string(), route: z.string() });
    const lines = service.linesWith('"route":"GET /users/v1/me"').map((line) => Line.parse(JSON.parse(line)));
    expect(lines.length).toBeGreaterThan(10);
    const ids = () => new Set(receiver.spans().map(({ traceId, spanId }) => `${traceId} ${spanId}`));
    // The span of a request ends and is exported after the spans of its steps.
    await expect
      .poll(() => lines.filter((line) => !ids().has(`${line.trace_id} ${line.span_id}`)))
      .toEqual([]);
  });
});

/** Starts another process of the service for one test. */
const startProcess = async (environment: Record<string, string>) =>
  stopAfterTest(await startServiceProcess({ ...service.environment, ...environment }));

/** Time that a platform waits after SIGTERM before it sends SIGKILL. */
const SHUTDOWN_MS = 10_000;
/** Resolves with the exit code, or with 'still running' when a platform would kill the process. */
const exitInTime = ({ exited }: { exited: Promise<number | null> }) =>
  Promise.race([exited, pause(SHUTDOWN_MS, 'still running', { ref: false })]);

/** Export intervals of an hour, so that no export is due during a test. */
const LONG_INTERVALS = { OTEL_BSP_SCHEDULE_DELAY: '3600000', OTEL_METRIC_EXPORT_INTERVAL: '3600000' };

test('On SIGTERM, the service exports the remaining telemetry before it exits', async () => {
  const own = stopAfterTest(await startOtlpReceiver());
  const stopping = await startProcess({ ...otelVariables(own), ...LONG_INTERVALS });
  await me(stopping.url, token);
  expect(own.calls).toEqual([]);
  process.kill(stopping.pid, 'SIGTERM');
  expect(await exitInTime(stopping)).toBe(0);
  expect(own.metrics().map(({ name }) => name)).toContain('identity_link.guard.requests');
  expect(own.spans().map(({ name }) => name)).toContain('guard');
});

test('The standard OTEL variables set the endpoint and the headers of the exports, and the default format of spans is protobuf', async () => {
  const own = stopAfterTest(await startOtlpReceiver());
  const stopping = await startProcess({
    ...otelVariables(own),
    ...LONG_INTERVALS,
    OTEL_EXPORTER_OTLP_PROTOCOL: '',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-the-collector',
  });
  await me(stopping.url, token);
  process.kill(stopping.pid, 'SIGTERM');
  expect(await exitInTime(stopping)).toBe(0);
  expect(new Set(own.calls)).toEqual(
    new Set([
      '/v1/traces application/x-protobuf Bearer of-the-collector',
      '/v1/metrics application/json Bearer of-the-collector',
    ]),
  );
  expect(stopping.output()).not.toContain('of-the-collector');
});

test('The service does not forward the trace headers of a caller to the KV store', async () => {
  let sent = '';
  const proxy = stopAfterTest(await startTcpProxy(service.kv.address));
  proxy.onClientData = (chunk) => {
    sent += chunk.toString();
  };
  // By default, @vercel/otel forwards trace headers to the host name `localhost`. The URL below contains this name, so the test
  // fails unless the service turns the default off.
  const calling = await startProcess({ KV_REST_API_URL: `http://localhost:${proxy.port}` });
  const headers = { ...bearer(token), ...TRACE };
  expect(await send(`${calling.url}/users/v1/me`, { headers })).toMatchObject({ status: 200 });
  expect(sent).toContain('POST /pipeline');
  expect(sent).not.toMatch(/traceparent|tracestate|baggage/i);
});

test.each(['hang', 'fail'] as const)(
  'A telemetry receiver that accepts no data (%s) affects neither responses nor the shutdown',
  async (treatment) => {
    const own = stopAfterTest(await startOtlpReceiver());
    own.treat(treatment);
    const running = await startProcess(otelVariables(own));
    for (let request = 0; request < 20; request += 1) {
      expect(await me(running.url, token)).toMatchObject({ status: 200 });
    }
    await expect.poll(() => own.calls.length).toBeGreaterThan(1);
    process.kill(running.pid, 'SIGTERM');
    expect(await exitInTime(running)).toBe(0);
  },
);

test('A telemetry receiver that is down affects neither responses nor the shutdown, and the failure is logged only once', async () => {
  const own = await startOtlpReceiver();
  await own.stop();
  const running = await startProcess(otelVariables(own));
  for (let request = 0; request < 20; request += 1) {
    expect(await me(running.url, token)).toMatchObject({ status: 200 });
  }
  const lines = () => running.output().split('telemetry could not be sent').length - 1;
  await expect.poll(lines).toBe(1);
  process.kill(running.pid, 'SIGTERM');
  expect(await exitInTime(running)).toBe(0);
  expect(lines()).toBe(1);
});

/** Files of the build that contain the OpenTelemetry SDK. */
const sdkFiles = readdirSync(path.join(BUILD_FOLDER, 'server/chunks'))
  .filter((name) => name.endsWith('.js'))
  .filter((name) =>
    /PeriodicExportingMetricReader|BatchSpanProcessor/.test(
      readFileSync(path.join(BUILD_FOLDER, 'server/chunks', name), 'utf8'),
    ),
  );

/** Returns the output of a process that served one request. On exit, the process prints the files that it loaded. */
async function loadedBy(environment: Record<string, string>): Promise<string> {
  const preload = new URL('../harness/dependencies/print-loaded-files.mjs', import.meta.url).href;
  const running = await startProcess({ ...environment, NODE_OPTIONS: `--import ${preload}` });
  expect(await me(running.url, token)).toMatchObject({ status: 200 });
  process.kill(running.pid, 'SIGTERM');
  await running.exited;
  return running.output();
}

test('With telemetry off, the service does not load the OpenTelemetry SDK', async () => {
  const unset = Object.fromEntries(Object.keys(otelVariables(receiver)).map((name) => [name, '']));
  const loaded = await loadedBy(unset);
  expect(loaded).toContain('loaded: ');
  expect(sdkFiles.filter((file) => loaded.includes(file))).toEqual([]);
});

// Shows that the test above would detect a loaded SDK.
test('With telemetry on, the service loads the OpenTelemetry SDK', async () => {
  const loaded = await loadedBy({});
  expect(sdkFiles.length).toBeGreaterThan(0);
  expect(sdkFiles.filter((file) => !loaded.includes(file))).toEqual([]);
});

test.each([
  ['OTEL_TRACES_EXPORTER=none', { OTEL_TRACES_EXPORTER: 'none' }, { spans: false, metrics: true }],
  ['OTEL_METRICS_EXPORTER=none', { OTEL_METRICS_EXPORTER: 'none' }, { spans: true, metrics: false }],
  ['OTEL_TRACES_SAMPLER=always_off', { OTEL_TRACES_SAMPLER: 'always_off' }, { spans: false, metrics: true }],
])(
  'The service does not export the traces or metrics that a variable turns off: %s',
  async (_what, environment, expected) => {
    const own = stopAfterTest(await startOtlpReceiver());
    const stopping = await startProcess({ ...otelVariables(own), ...LONG_INTERVALS, ...environment });
    await me(stopping.url, token);
    process.kill(stopping.pid, 'SIGTERM');
    expect(await exitInTime(stopping)).toBe(0);
    expect({ spans: own.spans().length > 0, metrics: own.metrics().length > 0 }).toEqual(expected);
    expect(stopping.output().includes('trace_id')).toBe(expected.spans);
  },
);

test('The service starts despite invalid OTEL variables, and logs the problem', async () => {
  const odd = await startProcess({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' });
  expect(await me(odd.url, token)).toMatchObject({ status: 200 });
  expect(odd.output()).toContain('the OTLP endpoint is not an http(s):// URL');
  const unknown = await startProcess({ OTEL_PROPAGATORS: 'carrier-pigeon' });
  expect(await me(unknown.url, token)).toMatchObject({ status: 200 });
  expect(unknown.output()).toContain('telemetry could not be started');
});

import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { startTelemetry } from '#lib/telemetry/sdk';
import { BUILD_FOLDER } from '../harness/build';
import { startOtlpReceiver } from '../harness/parts/otlp-receiver';
import { startTcpProxy } from '../harness/parts/tcp-proxy';
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
import { SECRET_KEY, SIGNING_SECRET, startServiceProcess, startTestService } from '../harness/service';
import { doEverything, metricsTable, otelVariables } from '../harness/telemetry';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';

const mark = (what: string) => `${what}${randomBytes(8).toString('hex')}`;

/** What must never leave. Each is put in below, wherever a caller can put something. */
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
await doEverything(service);
await hostileTraffic();

/** Requests with something in each place of which nothing may be told. */
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
/** The values of a metric's points by what their attributes say. */
const points = (name: string) =>
  Object.fromEntries(
    (metric(name)?.points ?? []).map(({ attributes, value }) => [Object.values(attributes).join(' '), value]),
  );

/** Once all that was done above has arrived. */
async function arrived(): Promise<void> {
  await expect.poll(() => points('identity_link.guard.requests')).toHaveProperty('failed');
  await expect.poll(() => points('identity_link.cache.breaker.open')).toEqual({ '': 1 });
  // Both go on arriving, each in its own time.
  const guarded = () => receiver.spans().filter(({ name }) => name === 'guard').length;
  const counted = () =>
    Object.values(points('identity_link.guard.requests')).reduce((sum, value) => sum + value, 0);
  await expect.poll(() => guarded() - counted()).toBe(0);
}

describe('with telemetry on', () => {
  test('the metrics that arrive are the table of docs/telemetry.md', async () => {
    await arrived();
    expect(readFileSync('docs/telemetry.md', 'utf8')).toContain(metricsTable(receiver.metrics()));
  });

  test('the metrics count what was done', async () => {
    await arrived();
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

  test('no attribute of a metric has a value that a caller thought of', async () => {
    await arrived();
    const values = receiver
      .metrics()
      .flatMap((each) => each.points.flatMap(({ attributes }) => Object.entries(attributes)))
      .map(([name, value]) => `${name}=${value}`);
    const bounded = [
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
    expect(values.filter((value) => !bounded.some((pattern) => pattern.test(value)))).toEqual([]);
  });

  test('each step is a span with its outcome, in the trace of its request', async () => {
    await arrived();
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

  test('the framework’s spans say the status that was answered, and no other', async () => {
    await arrived();
    const statuses = (route: string) =>
      new Set(
        receiver
          .spans()
          .flatMap(({ name, attributes }) => (name === route ? [attributes['http.status_code']] : [])),
      );
    expect(statuses('GET /users/v1/me')).toEqual(new Set([200, 401, 500]));
    expect(statuses('POST /webhooks/idp/v1/user-created')).toEqual(new Set([200, 400]));
    // Where the middleware has run, the framework ends a span early and says 200.
    expect(statuses('POST')).toEqual(new Set([undefined]));
  });

  test('nothing personal or secret is in any byte that left, wherever a caller had put it', async () => {
    await arrived();
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

  test('a span has no attribute that is not on the list, no event, and no other name than its kind’s', async () => {
    await arrived();
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

  test('the exporter’s own calls are no spans', async () => {
    await arrived();
    const { port } = new URL(receiver.url);
    expect(receiver.spans().filter(({ attributes }) => attributes['net.peer.port'] === port)).toEqual([]);
  });

  test('each process has an id of its own, and says of its surroundings what is so', async () => {
    await arrived();
    const [resource] = receiver.resources();
    expect(resource).toMatchObject({
      'service.name': 'identity-link',
      'service.instance.id': expect.stringMatching(/^[\da-f-]{36}$/),
    });
    expect(resource).not.toHaveProperty('cloud.provider');
  });

  test('a line of the log has the ids of a span that arrives', async () => {
    await arrived();
    const Line = z.object({ trace_id: z.string(), span_id: z.string(), route: z.string() });
    const lines = service.linesWith('"route":"GET /users/v1/me"').map((line) => Line.parse(JSON.parse(line)));
    expect(lines.length).toBeGreaterThan(10);
    const ids = () => new Set(receiver.spans().map(({ traceId, spanId }) => `${traceId} ${spanId}`));
    // The request's own span ends, and leaves, behind those of its steps.
    await expect
      .poll(() => lines.filter((line) => !ids().has(`${line.trace_id} ${line.span_id}`)))
      .toEqual([]);
  });
});

/** One more process of the service, of a test's own. */
const startProcess = async (environment: Record<string, string>) =>
  stopAfterTest(await startServiceProcess({ ...service.environment, ...environment }));

/** What a platform grants between SIGTERM and SIGKILL. */
const SHUTDOWN_MS = 10_000;
const exitInTime = ({ exited }: { exited: Promise<number | null> }) =>
  Promise.race([exited, pause(SHUTDOWN_MS, 'still running', { ref: false })]);

/** Far longer than a test. */
const LATE = { OTEL_BSP_SCHEDULE_DELAY: '3600000', OTEL_METRIC_EXPORT_INTERVAL: '3600000' };

test('where functions are suspended, each answer keeps its function until what it told has left, and not for long', async () => {
  const own = stopAfterTest(await startOtlpReceiver());
  const kept: Promise<unknown>[] = [];
  const context = Symbol.for('@vercel/request-context');
  Reflect.set(globalThis, context, {
    get: () => ({ waitUntil: (work: Promise<unknown>) => kept.push(work) }),
  });
  vi.stubEnv('VERCEL', '1');
  vi.stubEnv('OTEL_METRIC_EXPORT_INTERVAL', LATE.OTEL_METRIC_EXPORT_INTERVAL);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    Reflect.deleteProperty(globalThis, context);
  });
  const telemetry = startTelemetry({ metrics: `${own.url}/v1/metrics` });
  const answer = { method: 'GET', route: '/users/v1/me', status: 200, seconds: 0.01, logFields: {} };
  const answered = () =>
    own.metrics().find(({ name }) => name === 'http.server.request.duration')?.points[0]?.value;

  telemetry.recordRequest(answer);
  expect(kept).toHaveLength(1);
  await Promise.all(kept);
  expect(answered()).toBe(1);

  for (let request = 0; request < 50; request += 1) telemetry.recordRequest(answer);
  await Promise.all(kept);
  expect(answered()).toBe(51);
  expect(own.calls.length, 'those of a burst share what is sent').toBeLessThan(5);

  own.treat('hang');
  telemetry.recordRequest(answer);
  await Promise.all(kept);
});

test('SIGTERM: what has not been sent is sent before the process ends', async () => {
  const own = stopAfterTest(await startOtlpReceiver());
  const leaving = await startProcess({ ...otelVariables(own), ...LATE });
  await me(leaving.url, token);
  expect(own.calls).toEqual([]);
  process.kill(leaving.pid, 'SIGTERM');
  expect(await exitInTime(leaving)).toBe(0);
  expect(own.metrics().map(({ name }) => name)).toContain('identity_link.guard.requests');
  expect(own.spans().map(({ name }) => name)).toContain('guard');
});

test('where it goes, in which form and with whose headers is what the standard variables say', async () => {
  const own = stopAfterTest(await startOtlpReceiver());
  const leaving = await startProcess({
    ...otelVariables(own),
    ...LATE,
    OTEL_EXPORTER_OTLP_PROTOCOL: '',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-the-collector',
  });
  await me(leaving.url, token);
  process.kill(leaving.pid, 'SIGTERM');
  expect(await exitInTime(leaving)).toBe(0);
  expect(new Set(own.calls)).toEqual(
    new Set([
      '/v1/traces application/x-protobuf Bearer of-the-collector',
      '/v1/metrics application/json Bearer of-the-collector',
    ]),
  );
  expect(leaving.output()).not.toContain('of-the-collector');
});

test('nothing of a caller’s trace goes on to the parts that the service calls', async () => {
  let sent = '';
  const proxy = stopAfterTest(await startTcpProxy(service.kv.address));
  proxy.onClientData = (chunk) => {
    sent += chunk.toString();
  };
  // By this name, the library would hand it on.
  const calling = await startProcess({ KV_REST_API_URL: `http://localhost:${proxy.port}` });
  const headers = { ...bearer(token), ...TRACE };
  expect(await send(`${calling.url}/users/v1/me`, { headers })).toMatchObject({ status: 200 });
  expect(sent).toContain('POST /pipeline');
  expect(sent).not.toMatch(/traceparent|tracestate|baggage/i);
});

test.each(['hang', 'fail'] as const)(
  'a receiver that does not take it (%s): answers are the same, and the process ends in time',
  async (treatment) => {
    const own = stopAfterTest(await startOtlpReceiver());
    own.treat(treatment);
    const suffering = await startProcess(otelVariables(own));
    for (let request = 0; request < 20; request += 1) {
      expect(await me(suffering.url, token)).toMatchObject({ status: 200 });
    }
    await expect.poll(() => own.calls.length).toBeGreaterThan(1);
    process.kill(suffering.pid, 'SIGTERM');
    expect(await exitInTime(suffering)).toBe(0);
  },
);

test('a receiver that is down: answers are the same, the log says it once, and the process ends in time', async () => {
  const own = await startOtlpReceiver();
  await own.stop();
  const suffering = await startProcess(otelVariables(own));
  for (let request = 0; request < 20; request += 1) {
    expect(await me(suffering.url, token)).toMatchObject({ status: 200 });
  }
  const lines = () => suffering.output().split('telemetry could not be sent').length - 1;
  await expect.poll(lines).toBe(1);
  process.kill(suffering.pid, 'SIGTERM');
  expect(await exitInTime(suffering)).toBe(0);
  expect(lines()).toBe(1);
});

/** Files of the build that hold the SDK. */
const ofTheSdk = readdirSync(path.join(BUILD_FOLDER, 'server/chunks'))
  .filter((name) => name.endsWith('.js'))
  .filter((name) =>
    /PeriodicExportingMetricReader|BatchSpanProcessor/.test(
      readFileSync(path.join(BUILD_FOLDER, 'server/chunks', name), 'utf8'),
    ),
  );

/** What a process has loaded by its end. */
async function loadedBy(environment: Record<string, string>): Promise<string> {
  const preload = new URL('../harness/parts/print-loaded-files.mjs', import.meta.url).href;
  const running = await startProcess({ ...environment, NODE_OPTIONS: `--import ${preload}` });
  expect(await me(running.url, token)).toMatchObject({ status: 200 });
  process.kill(running.pid, 'SIGTERM');
  await running.exited;
  return running.output();
}

test('off: nothing of the SDK is loaded', async () => {
  const unset = Object.fromEntries(Object.keys(otelVariables(receiver)).map((name) => [name, '']));
  const loaded = await loadedBy(unset);
  expect(loaded).toContain('loaded: ');
  expect(ofTheSdk.filter((file) => loaded.includes(file))).toEqual([]);
});

test('on: all of it is loaded, so the test above can fail', async () => {
  const loaded = await loadedBy({});
  expect(ofTheSdk.length).toBeGreaterThan(0);
  expect(ofTheSdk.filter((file) => !loaded.includes(file))).toEqual([]);
});

test.each([
  ['OTEL_TRACES_EXPORTER=none', { OTEL_TRACES_EXPORTER: 'none' }, { spans: false, metrics: true }],
  ['OTEL_METRICS_EXPORTER=none', { OTEL_METRICS_EXPORTER: 'none' }, { spans: true, metrics: false }],
  ['OTEL_TRACES_SAMPLER=always_off', { OTEL_TRACES_SAMPLER: 'always_off' }, { spans: false, metrics: true }],
])('what is not asked for does not leave: %s', async (_what, environment, expected) => {
  const own = stopAfterTest(await startOtlpReceiver());
  const leaving = await startProcess({ ...otelVariables(own), ...LATE, ...environment });
  await me(leaving.url, token);
  process.kill(leaving.pid, 'SIGTERM');
  expect(await exitInTime(leaving)).toBe(0);
  expect({ spans: own.spans().length > 0, metrics: own.metrics().length > 0 }).toEqual(expected);
  expect(leaving.output().includes('trace_id')).toBe(expected.spans);
});

test('what cannot be read stops no start: it is told, and nothing leaves', async () => {
  const odd = await startProcess({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' });
  expect(await me(odd.url, token)).toMatchObject({ status: 200 });
  expect(odd.output()).toContain('the OTLP endpoint is not an http(s):// URL');
  const unknown = await startProcess({ OTEL_PROPAGATORS: 'carrier-pigeon' });
  expect(await me(unknown.url, token)).toMatchObject({ status: 200 });
  expect(unknown.output()).toContain('telemetry could not be started');
});

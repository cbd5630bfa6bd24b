import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type OtlpReceiver, startOtlpReceiver } from '../harness/dependencies/otlp-receiver';
import { startTcpProxy } from '../harness/dependencies/tcp-proxy';
import { SECRET_KEY, SIGNING_SECRET } from '../harness/keys';
import {
  bearer,
  cookie,
  deliver,
  HOOK,
  ME,
  me,
  register,
  send,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../harness/requests';
import { startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';

/** Returns a private text that the service must not export. */
const mark = (what: string) => `${what}${randomBytes(8).toString('hex')}`;
const MARKS = {
  query: mark('query'),
  path: mark('path'),
  header: mark('header'),
  body: mark('body'),
  user: mark('user_'),
  message: mark('msg_'),
  type: mark('type'),
  token: mark('token'),
};
/** Headers of a caller that has a trace of its own. */
const TRACE = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: `vendor=${MARKS.header}`,
  baggage: `user=${MARKS.header}`,
};

/** Returns environment variables that export telemetry to the receiver at short intervals. */
const otelVariables = ({ url }: OtlpReceiver): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_BSP_SCHEDULE_DELAY: '100',
  OTEL_METRIC_EXPORT_INTERVAL: '1000',
});

const receiver = stopAfterAll(await startOtlpReceiver());
const service = stopAfterAll(await startTestService({ environment: otelVariables(receiver) }));
const { url, idp } = service;
const token = tokenFor(idp, MARKS.user);

/** Sends requests with a private value in each place that a client controls. Returns the internal id of the user. */
async function sendPrivateValues(): Promise<string> {
  const init = {
    headers: { ...cookie(token), ...TRACE, 'user-agent': MARKS.header, 'x-request-id': MARKS.header },
  };
  const query = `?token=${token}&q=${MARKS.query}`;
  const { body } = await send(`${url}${ME}${query}`, init);
  for (const at of ['users/v1', 'webhooks/idp/v1', 'sign-in', '_next/static', MARKS.path])
    await send(`${url}/${at}/${MARKS.path}${query}`, init);
  for (const page of ['', 'account', 'docs']) await send(`${url}/${page}${query}`, init);
  await me(url, `${MARKS.token}.${MARKS.token}.x`);
  await register(url, token, `{"${MARKS.body}"`);
  await register(url, token, { identityProviderUserId: `${MARKS.user}2` });
  const event = JSON.stringify({ ...JSON.parse(userCreated(`${MARKS.user}3`)), note: MARKS.body });
  await deliver(url, event, signatureHeaders(event, { id: MARKS.message }));
  await deliver(url, event, { ...signatureHeaders(event), 'svix-signature': `v1,${MARKS.header}` });
  await deliver(url, JSON.stringify({ type: MARKS.type, data: {} }));
  await service.database.proxy.treat('refuse');
  await me(url, tokenFor(idp, `${MARKS.user}4`));
  await service.database.proxy.treat('forward');
  await service.kv.proxy.treat('refuse');
  for (let request = 0; request < 6; request += 1) await me(url, token);
  await service.kv.proxy.treat('forward');
  return z.object({ userId: z.string() }).parse(body).userId;
}

test('The service exports its spans and metrics without a private value of a request and without a secret', async () => {
  const userId = await sendPrivateValues();
  const breaker = () =>
    receiver.metrics().find(({ name }) => name.endsWith('breaker.open'))?.points[0]?.value;
  await expect.poll(breaker).toBe(1);
  expect(receiver.metrics().map(({ name }) => name)).toEqual([
    'http.server.request.duration',
    'identity_link.cache.breaker.open',
    'identity_link.cache.operation.duration',
    'identity_link.registrations',
    'identity_link.webhook.last_verified.age',
    'identity_link.webhooks',
  ]);
  const steps = () =>
    new Set(
      receiver
        .spans()
        .map(
          ({ name, attributes: { 'identity_link.outcome': outcome, 'http.status_code': status } }) =>
            `${name} ${outcome ?? status}`,
        ),
    );
  await expect
    .poll(() => [...steps()])
    .toEqual(
      expect.arrayContaining([
        'cache read hit',
        'cache read miss',
        'cache read error',
        'cache write stored',
        'guard passed',
        'guard rejected',
        'guard failed',
        'register created',
        'register existing',
        'register failed',
        'verify webhook verified',
        'verify webhook rejected',
        `GET ${ME} 200`,
        `GET ${ME} 401`,
        `GET ${ME} 500`,
        `POST ${HOOK} 200`,
        `POST ${HOOK} 400`,
      ]),
    );
  const secrets = Object.entries({
    ...MARKS,
    token,
    userId,
    secretKey: SECRET_KEY,
    signingSecret: SIGNING_SECRET.replace('whsec_', ''),
    kvToken: service.environment['KV_REST_API_TOKEN'] ?? '',
    databaseUrl: service.environment['DATABASE_URL'] ?? '',
  });
  expect(secrets.filter(([, secret]) => secret.length < 16)).toEqual([]);
  expect(secrets.filter(([, secret]) => receiver.received().includes(secret))).toEqual([]);
});

test('The log line of a request has the trace id and the span id of an exported span', async () => {
  await me(url, token);
  const Line = z.object({ trace_id: z.string(), span_id: z.string() });
  const { trace_id, span_id } = Line.parse(JSON.parse(service.linesWith(`"route":"GET ${ME}"`).at(-1) ?? ''));
  await expect
    .poll(() => receiver.spans())
    .toContainEqual(expect.objectContaining({ traceId: trace_id, spanId: span_id }));
});

/** Starts another process of the service for one test. */
const startProcess = async (environment: Record<string, string>) =>
  stopAfterTest(await startServiceProcess({ ...service.environment, ...environment }));

/** Export intervals of an hour, so that no export is due during a test. */
const LONG_INTERVALS = { OTEL_BSP_SCHEDULE_DELAY: '3600000', OTEL_METRIC_EXPORT_INTERVAL: '3600000' };

test('On SIGTERM, the service exports the remaining telemetry to the endpoint and with the headers of the standard variables', async () => {
  const own = stopAfterTest(await startOtlpReceiver());
  const OTEL_EXPORTER_OTLP_HEADERS = 'authorization=Bearer%20of-the-collector';
  const stopping = await startProcess({
    ...otelVariables(own),
    ...LONG_INTERVALS,
    OTEL_EXPORTER_OTLP_HEADERS,
  });
  await me(stopping.url, token);
  expect(own.calls).toEqual([]);
  process.kill(stopping.pid, 'SIGTERM');
  expect(await stopping.exited).toBe(0);
  expect(own.calls.toSorted()).toEqual([
    '/v1/metrics application/json Bearer of-the-collector',
    '/v1/traces application/json Bearer of-the-collector',
  ]);
  expect(stopping.output()).not.toContain('of-the-collector');
});

test('The service does not forward the trace headers of a client to the KV store', async () => {
  let sent = '';
  const proxy = stopAfterTest(await startTcpProxy(service.kv.address));
  proxy.onClientData = (chunk) => {
    sent += chunk.toString();
  };
  const calling = await startProcess({ KV_REST_API_URL: `http://localhost:${proxy.port}` });
  const headers = { ...bearer(token), ...TRACE };
  expect(await send(`${calling.url}${ME}`, { headers })).toMatchObject({ status: 200 });
  expect(sent).toContain('POST /pipeline');
  expect(sent).not.toMatch(/traceparent|tracestate|baggage/i);
});

test.each(['hang', 'fail', 'stop'] as const)(
  'A collector that accepts no data (%s) affects neither responses nor the shutdown',
  async (treatment) => {
    const own = await startOtlpReceiver();
    if (treatment === 'stop') await own.stop();
    else stopAfterTest(own).treat(treatment);
    const running = await startProcess(otelVariables(own));
    for (let request = 0; request < 5; request += 1)
      expect(await me(running.url, token)).toMatchObject({ status: 200 });
    if (treatment !== 'hang')
      await expect.poll(() => running.output()).toContain('telemetry could not be sent');
    process.kill(running.pid, 'SIGTERM');
    expect(await running.exited).toBe(0);
    expect(running.output().split('telemetry could not be sent').length).toBeLessThanOrEqual(2);
  },
);

test('The service starts if OpenTelemetry cannot be started, and logs the problem', async () => {
  const running = await startProcess({ OTEL_PROPAGATORS: 'carrier-pigeon' });
  expect(await me(running.url, token)).toMatchObject({ status: 200 });
  expect(running.output()).toContain('telemetry could not be started');
});

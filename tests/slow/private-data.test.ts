import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { waitUntil } from '../../dev/system/processes';
import { ROLE_PASSWORD } from '../harness/dependencies/database';
import { startOtlpReceiver } from '../harness/dependencies/otlp-receiver';
import { SECRET_KEY, SIGNING_SECRET } from '../harness/keys';
import { exchange } from '../harness/raw-http';
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
} from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

/** Returns a unique text that begins with `what`. */
const mark = (what: string) => `${what}${randomBytes(8).toString('hex')}`;

/**
 * Values in the requests and the database URL. The log and the telemetry must not contain them. Only the log may contain `path`,
 * which is not a secret.
 */
const MARKS = {
  email: `${mark('ada')}@example.com`,
  firstName: mark('Ada'),
  eventBody: mark('eventBody'),
  registerBody: mark('registerBody'),
  query: mark('query'),
  cookie: mark('cookie'),
  path: mark('path'),
  identityProviderUserId: mark('user_'),
  actor: mark('user_'),
  badToken: mark('badToken'),
  signature: mark('signature'),
  databasePassword: ROLE_PASSWORD,
} as const;

/** Message id of the valid webhook deliveries. Operators search for this id in the logs of the service and of the sender. */
const MESSAGE_ID = 'msg_of_the_valid_delivery';

/** Responses to the hostile traffic, with their headers. */
const received: string[] = [];

const receiver = stopAfterAll(await startOtlpReceiver());
const service = stopAfterAll(
  await startTestService({
    environment: receiver.environment,
    databaseUrl: async (database) => (await database.createRole('ALTER ROLE $role SUPERUSER')).url,
  }),
);
const token = tokenFor(service.idp, MARKS.identityProviderUserId);
const impersonated = tokenFor(service.idp, 'user_impersonated', { act: { sub: MARKS.actor } });
const expired = tokenFor(service.idp, 'user_expired', { exp: 1_700_000_000, email: MARKS.email });
const SECRETS = {
  ...MARKS,
  token,
  expired,
  impersonated,
  signatureOfTheToken: token.split('.')[2] ?? '',
  secretKey: SECRET_KEY,
  signingSecret: SIGNING_SECRET.replace('whsec_', ''),
  kvToken: service.environment['KV_REST_API_TOKEN'] ?? '',
  jwtKey: (service.environment['IDP_JWT_KEY'] ?? '').split('\n')[2] ?? '',
  databaseUrl: service.environment['DATABASE_URL'] ?? '',
};
await hostileTraffic();
await service.kv.proxy.treat('refuse');
await hostileTraffic();
await service.database.proxy.treat('reset');
await hostileTraffic();
await service.database.proxy.treat('forward');
// One after another, because concurrent requests share an exchange with the cache, which is one failure.
for (let request = 0; request < 10; request += 1) await me(service.url, token);
const breaker = () => receiver.metrics().find(({ name }) => name.endsWith('breaker.open'))?.points[0]?.value;
const isOpenExported = await waitUntil(() => breaker() === 1, 20_000);
await service.kv.proxy.treat('forward');
for (let request = 0; request < 40; request += 1) await me(service.url, token);

/** Sends valid, invalid and hostile requests with private values. */
async function hostileTraffic(): Promise<void> {
  const { url } = service;
  const event = JSON.stringify({
    type: 'user.created',
    data: {
      id: mark('user_'),
      first_name: MARKS.firstName,
      email_addresses: [{ email_address: MARKS.email }],
      note: MARKS.eventBody,
    },
  });
  const odd = {
    cookie: `__session=${MARKS.cookie}; a=${MARKS.cookie}`,
    'x-request-id': `${MARKS.cookie} <odd>`,
    'user-agent': MARKS.cookie,
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    tracestate: `vendor=${MARKS.cookie}`,
    baggage: `user=${MARKS.cookie}`,
  };
  for (const page of ['', 'account', 'docs', 'sign-in/x', '_next/static/x'])
    await send(`${url}/${page}?q=${MARKS.query}&token=${token}`, { headers: { ...odd, ...cookie(token) } });
  const responses = await Promise.all([
    me(url, token),
    me(url, expired),
    me(url, impersonated),
    me(url, `${MARKS.badToken}.${MARKS.badToken}.x`),
    me(url, `ak_${MARKS.badToken}`),
    send(`${url}/users/v1/me?email=${MARKS.query}&__clerk_handshake=${MARKS.query}`, {
      headers: { ...bearer(token), ...odd },
    }),
    send(`${url}/users/v1/${MARKS.path}`),
    register(url, token, `{"${MARKS.registerBody}"`),
    register(url, token, { identityProviderUserId: 7, email: MARKS.registerBody }),
    register(url, token, { identityProviderUserId: `${mark('a')}\0`, email: MARKS.registerBody }),
    register(url, token, ' '.repeat(17_000) + MARKS.registerBody),
    deliver(url, event, signatureHeaders(event, { id: MESSAGE_ID })),
    register(url, token, { identityProviderUserId: MARKS.identityProviderUserId }),
    deliver(url, event, { ...signatureHeaders(event), 'svix-signature': `v1,${MARKS.signature}` }),
    deliver(url, `${event}${MARKS.eventBody}`, signatureHeaders(event)),
    deliver(url, JSON.stringify({ type: 7, note: MARKS.eventBody })),
    deliver(url, JSON.stringify({ type: 'user.created', data: { id: { email: MARKS.email } } })),
  ]);
  for (const { headers, body } of responses) received.push(JSON.stringify([[...headers], body]));
  const head = `POST /auth/v1/register HTTP/1.1\r\nHost: localhost\r\nCookie: ${MARKS.cookie}\r\n`;
  const broken = await Promise.all([
    exchange(url, `${head}Content-Length: x${MARKS.cookie}\r\n\r\n${MARKS.registerBody}`),
    exchange(url, `${head}Content-Length: 100\r\n\r\n${MARKS.registerBody}`, 200),
    exchange(url, `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n${MARKS.registerBody}`),
  ]);
  received.push(...broken.map(({ text }) => text));
}

describe('After three rounds of hostile traffic (with all dependencies, without the cache, without the cache and the database)', () => {
  test('The output of the service after hostile traffic contains no secret, token, email address, body or user id', () => {
    expect(Object.values(SECRETS).every((secret) => secret.length >= 16)).toBe(true);
    const { path, ...others } = SECRETS;
    const output = service.output();
    expect(Object.entries(others).filter(([, secret]) => output.includes(secret))).toEqual([]);
    // The path is not a secret. Each of the three rounds requests it once, and the service may log each request once.
    expect(output.split(path).length - 1).toBeLessThanOrEqual(3);
  });

  test('The responses to hostile traffic contain no secret, token, email address, body or implementation detail', () => {
    // A response may contain the caller's own id, and Next.js includes the path and query of the request in its pages.
    const { identityProviderUserId: _id, query: _query, path: _path, ...others } = MARKS;
    const secrets = [...Object.values(others), token, expired, SECRET_KEY, SIGNING_SECRET];
    expect(received.length).toBeGreaterThan(50);
    expect(secrets.filter((secret) => received.some((response) => response.includes(secret)))).toEqual([]);
    const internals = /node_modules|\.ts:\d|at async|prisma|postgres|ECONN|users_/i;
    expect(received.filter((response) => internals.test(response))).toEqual([]);
  });

  const Line = z.strictObject({
    level: z.enum(['info', 'error']),
    time: z.iso.datetime(),
    requestId: z.string().regex(/^[A-Za-z0-9_.:-]{1,64}$/),
    // The route is `none` if the received bytes are not a valid HTTP request.
    route: z.string().regex(/^(?:(?:GET|POST|OPTIONS|PUT|PATCH|DELETE|HEAD) (?:\/|unknown$)|none$)/),
    status: z.int().min(200).max(599),
    ms: z.int().min(0),
    cache: z.enum(['hit', 'miss', 'bypass']).optional(),
    caller: z.enum(['created', 'existing']).optional(),
    registered: z.enum(['created', 'existing', 'forgotten']).optional(),
    reason: z.optional(z.string().regex(/^[a-z-]+$/)),
    eventType: z.string().max(64).optional(),
    messageId: z.string().max(64).optional(),
    handler: z.enum(['completed', 'repeated']).optional(),
    impersonated: z.literal(true).optional(),
    error: z.record(z.string(), z.unknown()).optional(),
    trace_id: z.string().length(32).optional(),
    span_id: z.string().length(16).optional(),
    msg: z.literal('request'),
  });

  test('The log line of a request has only known fields, the ids of its span if it reached a route, and the level error exactly if the status is at least 500', () => {
    const lines = service.linesWith('"msg":"request"').map((line) => Line.parse(JSON.parse(line)));
    expect(lines.length).toBeGreaterThan(60);
    const statuses = new Set(lines.map(({ status }) => status));
    for (const status of [200, 400, 401, 404, 413, 500]) expect(statuses).toContain(status);
    expect(lines.filter(({ status, level }) => (level === 'error') !== status >= 500)).toEqual([]);
    expect(lines.filter(({ route, span_id }) => (route === 'none') !== (span_id === undefined))).toEqual([]);
  });

  test('The exported spans and metrics contain no secret, token, email address, body, path, id or header', async () => {
    expect(isOpenExported).toBe(true);
    expect(receiver.metrics().map(({ name }) => name)).toEqual([
      'http.server.request.duration',
      'identity_link.cache.breaker.open',
      'identity_link.cache.operation.duration',
      'identity_link.registrations',
      'identity_link.webhook.last_verified.age',
      'identity_link.webhooks',
    ]);
    const names = ['cache read', 'cache write', 'guard', 'register', 'verify webhook'];
    const spans = () => receiver.spans().map(({ name }) => name);
    await expect.poll(spans).toEqual(expect.arrayContaining([...names, `GET ${ME}`, `POST ${HOOK}`]));
    const [userId = ''] = await service.database.idsOf(MARKS.identityProviderUserId);
    const exported = receiver.received();
    expect(
      Object.entries({ ...SECRETS, userId, MESSAGE_ID }).filter(([, secret]) => exported.includes(secret)),
    ).toEqual([]);
  });

  test('Each query of the dashboard and of the alerts names metrics, units and attributes that the service exports', () => {
    const units: Record<string, string> = { s: '.seconds', ms: '.milliseconds' };
    const exported = receiver
      .metrics()
      .flatMap(({ name, unit = '', points }) => [
        name + (units[unit] ?? ''),
        ...points.flatMap(({ attributes }) => Object.keys(attributes)),
      ]);
    const files = ['dashboard.json', 'alerts.yaml'].map((file) =>
      readFileSync(`docs/telemetry/${file}`, 'utf8'),
    );
    const queried = files
      .join()
      .match(/\b(?:http|identity_link)_\w+/g)
      ?.map((name) => name.replace(/_(?:total|count|bucket)$/, ''));
    const names = new Set(exported.map((name) => name.replaceAll('.', '_')));
    expect(queried?.length).toBeGreaterThan(20);
    expect(queried?.filter((name) => !names.has(name))).toEqual([]);
  });
});

import { beforeAll, expect, test } from 'vitest';
import document from '../../lib/api/openapi.json';
import { exchange, requestHead } from '../harness/hostile/raw-http';
import { parseResponses } from '../harness/hostile/raw-responses';
import { DOCUMENTED } from '../harness/openapi';
import { bearer, deliver, HOOK, ME, me, REGISTER, register, send, tokenFor } from '../harness/requests';
import type { SeenResponse } from '../harness/responses';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

// Provokes the documented responses and compares them with the examples in the OpenAPI document.

const service = stopAfterAll(await startTestService());
const { pool, proxy } = service.database;
const token = (user: string) => tokenFor(service.idp, user);

const registration =
  document.paths[REGISTER].post.requestBody.content['application/json'].examples.user.value;
const events = document.paths[HOOK].post.requestBody.content['application/json'].examples;
const { userId, identityProviderUserId } =
  document.paths[ME].get.responses[200].content['application/json'].examples.context.value;

type Received = Pick<SeenResponse, 'status' | 'headers'> & { readonly body: unknown };

/** Sends bytes on a new connection and returns the first response. */
async function sendRaw(bytes: string): Promise<Received> {
  const { text } = await exchange(service.url, { bytes });
  const [response] = parseResponses(bytes, text);
  if (!response) throw new Error(`No response: ${text}`);
  return { status: response.status, headers: response.headers, body: JSON.parse(response.text) };
}

/** Each function sends a request that the service rejects before routing. The key is the name of the expected example. */
const rejections: Record<string, (line: string) => Promise<Received>> = {
  badRequest: (line) => sendRaw(`${line}\r\nConnection: close\r\n\r\n`),
  requestTimeout: (line) => sendRaw(`${line}\r\nHost: localhost\r\nX-Never-`),
  expectationFailed: (line) => sendRaw(requestHead(line, { Expect: 'a miracle' })),
  headersTooLarge: (line) => sendRaw(requestHead(line, { 'X-Large': 'x'.repeat(20_000) })),
};

async function withoutDatabase(sendRequest: () => Promise<Received>): Promise<Received> {
  await proxy.treat('refuse');
  return sendRequest().finally(() => proxy.treat('forward'));
}

/**
 * Sends a register request with the token of `user_caller`. Once the internal id of `user_caller` is cached, the guard (session
 * check of a route) does not need the database. A 500 in a database outage therefore comes from the handler, which registers
 * the user in the body, and not from the guard.
 */
const submit = (body: unknown) => register(service.url, token('user_caller'), body);
const submitId = (id: unknown) => submit({ identityProviderUserId: id });
const get = (path: string) => send(`${service.url}${path}`);
const event = (value: unknown) => deliver(service.url, JSON.stringify(value));

/** Inserts the user of the documented examples. The service itself would give the user a random internal id. */
async function insertExampleUser(): Promise<void> {
  await pool.query('DELETE FROM users WHERE id = $1 OR identity_provider_user_id = $2', [
    userId,
    identityProviderUserId,
  ]);
  await pool.query('INSERT INTO users (id, identity_provider_user_id) VALUES ($1, $2)', [
    userId,
    identityProviderUserId,
  ]);
}

/** Waits until the readiness response contains `expected`. The service caches the readiness response for 1 s. */
async function health(expected: string, status: number): Promise<Received> {
  await expect.poll(async () => JSON.stringify((await get('/health/ready')).body)).toContain(expected);
  const response = await get('/health/ready');
  expect(response.status).toBe(status);
  return response;
}

/**
 * Functions that provoke the documented examples. A key consists of the name of a response in `DOCUMENTED` and the name of an
 * example.
 */
const provocations: Record<string, () => Promise<Received>> = {
  [`GET ${ME} 200 context`]: async () => {
    await insertExampleUser();
    return me(service.url, token(identityProviderUserId));
  },
  [`GET ${ME} 401 unauthorized`]: () => get(ME),
  [`GET ${ME} 500 internalServerError`]: () =>
    withoutDatabase(() => me(service.url, token('user_never_seen'))),

  [`POST ${REGISTER} 200 link`]: async () => {
    await insertExampleUser();
    return submit(registration);
  },
  [`POST ${REGISTER} 201 link`]: async () => {
    await pool.query('DELETE FROM users WHERE identity_provider_user_id = $1', [identityProviderUserId]);
    const { body, ...response } = await submit(registration);
    return { ...response, body: { ...Object(body), userId } };
  },
  [`POST ${REGISTER} 400 notJson`]: () => submit('{'),
  [`POST ${REGISTER} 400 notAnObject`]: () => submit([]),
  [`POST ${REGISTER} 400 notAString`]: () => submitId(7),
  [`POST ${REGISTER} 400 empty`]: () => submitId(''),
  [`POST ${REGISTER} 400 tooLong`]: () => submitId('😀'.repeat(256)),
  [`POST ${REGISTER} 400 notWellFormed`]: () => submitId('a\ud800'),
  [`POST ${REGISTER} 401 unauthorized`]: () => send(`${service.url}${REGISTER}`, { method: 'POST' }),
  [`POST ${REGISTER} 409 forgotten`]: async () => {
    await pool.query(
      `INSERT INTO forgotten_users VALUES (forgotten_user_hash($1), now(), now() + interval '1 day')`,
      ['user_forgotten'],
    );
    return submitId('user_forgotten');
  },
  [`POST ${REGISTER} 413 payloadTooLarge`]: () => submit(' '.repeat(16 * 1024 + 1)),
  [`POST ${REGISTER} 500 internalServerError`]: async () => {
    await submitId('user_caller');
    return withoutDatabase(() => submitId('user_never_registered'));
  },

  [`POST ${HOOK} 200 acknowledgment`]: () => event(events.created.value),
  [`POST ${HOOK} 400 missingBody`]: () => deliver(service.url, ''),
  [`POST ${HOOK} 400 invalidSignature`]: () => deliver(service.url, '{}', {}),
  [`POST ${HOOK} 400 invalidEvent`]: () => event({}),
  [`POST ${HOOK} 413 payloadTooLarge`]: () => deliver(service.url, ' '.repeat(1024 * 1024 + 1)),
  [`POST ${HOOK} 500 internalServerError`]: () =>
    withoutDatabase(() => event({ type: 'user.created', data: { id: 'user_never_announced' } })),

  'GET /health/alive 200 alive': () => get('/health/alive'),
  'GET /health/ready 200 ready': () => health('ok', 200),
  'GET /health/ready 200 degraded': async () => {
    await service.kv.proxy.treat('refuse');
    return health('degraded', 200).finally(() => service.kv.proxy.treat('forward'));
  },
  'GET /health/ready 503 noDatabase': () => withoutDatabase(() => health('unavailable', 503)),

  'elsewhere 404 NotFound notFound': () => get('/users/v1/nobody'),
  'elsewhere 405 MethodNotAllowed methodNotAllowed': () =>
    send(`${service.url}${ME}`, { method: 'PROPFIND' }),
};

/** Key of the example for a process that is shutting down. health.test.ts provokes this example. */
const STOPPING = 'GET /health/ready 503 stopping';
const examples = DOCUMENTED.flatMap(({ name, method, pathname, status, examples }) =>
  Object.entries(examples).map(([kind, body]) => {
    const reject = rejections[kind]?.bind(
      undefined,
      `${method || 'GET'} ${pathname ?? '/users/v1/nobody'} HTTP/1.1`,
    );
    return { key: `${name} ${kind}`, kind, expected: { status, body }, reject };
  }),
).filter(({ key }) => key !== STOPPING);

/** The responses to requests that time out, by key. A timeout takes 10 s, so all requests are sent at the same time. */
let timeouts: ReadonlyMap<string, Promise<Received> | undefined>;
beforeAll(() => {
  timeouts = new Map(
    examples.filter(({ kind }) => kind === 'requestTimeout').map(({ key, reject }) => [key, reject?.()]),
  );
});

test.each(examples.map((example) => [example.key, example] as const))(
  'The response of the service equals its example in the OpenAPI document: %s',
  async (key, { expected, reject }) => {
    const response = await (timeouts.get(key) ?? (provocations[key] ?? reject)?.());
    if (!response) throw new Error('No test provokes this example: add a function to `provocations`');
    expect({ status: response.status, body: response.body }).toEqual(expected);
  },
);

test('Each key of `provocations` names an example in the OpenAPI document', () => {
  const keys = examples.map(({ key }) => key);
  expect(Object.keys(provocations).filter((key) => !keys.includes(key))).toEqual([]);
});

test('The webhook acknowledges the documented example of an event other than user.created', async () => {
  expect(await event(events.other.value)).toMatchObject({
    status: 200,
    body: { eventType: 'email.created' },
  });
});

test('The OpenAPI document has the same responses for the webhook user.created and for the path that receives this webhook', () => {
  expect(document.webhooks['user.created'].post.responses).toEqual(document.paths[HOOK].post.responses);
});

test('GET and HEAD requests to /openapi.json need no credential. Other methods get a 405, and other spellings of the path get a 404', async () => {
  const { status, body } = await get('/openapi.json');
  expect({ status, body }).toEqual({ status: 200, body: document });
  expect((await send(`${service.url}/openapi.json`, { method: 'HEAD' })).status).toBe(200);
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PROPFIND']) {
    const rejected = await send(`${service.url}/openapi.json`, {
      method,
      headers: bearer(token('user_caller')),
    });
    expect(rejected).toMatchObject({ status: 405, body: { message: 'Method not allowed' } });
    expect(rejected.headers.get('allow')).toBe('GET, HEAD');
  }
  for (const address of [
    '/openapi%2ejson',
    '/openapi.json/',
    '/openapi.json.rsc',
    '/openapi.yaml',
    '/OpenAPI.json',
  ]) {
    expect((await get(address)).status).toBe(404);
  }
});

test('A route responds 405 to an unsupported method and 204 to OPTIONS', async () => {
  expect((await send(`${service.url}${ME}`, { method: 'DELETE' })).status).toBe(405);
  expect((await send(`${service.url}${ME}`, { method: 'OPTIONS' })).status).toBe(204);
});

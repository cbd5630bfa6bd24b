import { expect, test } from 'vitest';
import document from '../../lib/api/openapi.json';
import type { SeenAnswer } from '../harness/answers';
import { answersIn } from '../harness/hostile/raw-answers';
import { exchange, requestHead } from '../harness/hostile/raw-http';
import { DOCUMENTED } from '../harness/openapi';
import { bearer, deliver, HOOK, ME, me, REGISTER, register, send, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

/*
 * Each answer that the document describes is provoked, and each of its examples is what was sent or what came back.
 */

const service = stopAfterAll(await startTestService());
const { pool, proxy } = service.database;
const token = (user: string) => tokenFor(service.idp, user);

const registration =
  document.paths[REGISTER].post.requestBody.content['application/json'].examples.user.value;
const events = document.paths[HOOK].post.requestBody.content['application/json'].examples;
const { userId, identityProviderUserId } =
  document.paths[ME].get.responses[200].content['application/json'].examples.context.value;

type Told = Pick<SeenAnswer, 'status' | 'headers'> & { readonly body: unknown };

/** Sends bytes on a connection of their own, which is answered once. */
async function sendRaw(bytes: string): Promise<Told> {
  const { text } = await exchange(service.url, { bytes });
  const [answer] = answersIn(bytes, text);
  if (!answer) throw new Error(`No answer came: ${text}`);
  return { status: answer.status, headers: answer.headers, body: JSON.parse(answer.text) };
}

/** What is refused in front of the routes, of whatever is asked. */
const refusals: Record<string, (line: string) => Promise<Told>> = {
  badRequest: (line) => sendRaw(`${line}\r\nConnection: close\r\n\r\n`),
  requestTimeout: (line) => sendRaw(`${line}\r\nHost: localhost\r\nX-Never-`),
  expectationFailed: (line) => sendRaw(requestHead(line, { Expect: 'a miracle' })),
  headersTooLarge: (line) => sendRaw(requestHead(line, { 'X-Large': 'x'.repeat(20_000) })),
};

async function withoutDatabase(ask: () => Promise<Told>): Promise<Told> {
  await proxy.treat('refuse');
  return ask().finally(() => proxy.treat('forward'));
}

/** The caller is known and cached, so that only what is asked for needs the database. */
const submit = (body: unknown) => register(service.url, token('user_caller'), body);
const submitId = (id: unknown) => submit({ identityProviderUserId: id });
const get = (path: string) => send(`${service.url}${path}`);
const event = (value: unknown) => deliver(service.url, JSON.stringify(value));

/** The row that the examples speak of: its id is random when it is made. */
async function knowTheExample(): Promise<void> {
  await pool.query('DELETE FROM users WHERE id = $1 OR identity_provider_user_id = $2', [
    userId,
    identityProviderUserId,
  ]);
  await pool.query('INSERT INTO users (id, identity_provider_user_id) VALUES ($1, $2)', [
    userId,
    identityProviderUserId,
  ]);
}

/** Health is told again for a second. */
async function health(expected: string, status: number): Promise<Told> {
  await expect.poll(async () => JSON.stringify((await get('/health/ready')).body)).toContain(expected);
  const answer = await get('/health/ready');
  expect(answer.status).toBe(status);
  return answer;
}

const ways: Record<string, () => Promise<Told>> = {
  [`GET ${ME} 200 context`]: async () => {
    await knowTheExample();
    return me(service.url, token(identityProviderUserId));
  },
  [`GET ${ME} 401 unauthorized`]: () => get(ME),
  [`GET ${ME} 500 internalServerError`]: () =>
    withoutDatabase(() => me(service.url, token('user_never_seen'))),

  [`POST ${REGISTER} 200 link`]: async () => {
    await knowTheExample();
    return submit(registration);
  },
  [`POST ${REGISTER} 201 link`]: async () => {
    await pool.query('DELETE FROM users WHERE identity_provider_user_id = $1', [identityProviderUserId]);
    const { body, ...answer } = await submit(registration);
    return { ...answer, body: { ...Object(body), userId } };
  },
  [`POST ${REGISTER} 400 notJson`]: () => submit('{'),
  [`POST ${REGISTER} 400 notAnObject`]: () => submit([]),
  [`POST ${REGISTER} 400 notAString`]: () => submitId(7),
  [`POST ${REGISTER} 400 empty`]: () => submitId(''),
  [`POST ${REGISTER} 400 tooLong`]: () => submitId('😀'.repeat(256)),
  [`POST ${REGISTER} 400 notWellFormed`]: () => submitId('a\ud800'),
  [`POST ${REGISTER} 401 unauthorized`]: () => send(`${service.url}${REGISTER}`, { method: 'POST' }),
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

/** Provoked by health.test.ts, which ends a process for it. */
const LEAVING = 'GET /health/ready 503 stopping';
const examples = DOCUMENTED.flatMap(({ name, method, pathname, status, examples }) =>
  Object.entries(examples).map(([kind, body]) => {
    const refused = refusals[kind]?.bind(
      undefined,
      `${method || 'GET'} ${pathname ?? '/users/v1/nobody'} HTTP/1.1`,
    );
    return { key: `${name} ${kind}`, kind, expected: { status, body }, refused };
  }),
).filter(({ key }) => key !== LEAVING);

/** These take 10 s each: all are begun at once. */
const timeouts = new Map(
  examples.filter(({ kind }) => kind === 'requestTimeout').map(({ key, refused }) => [key, refused?.()]),
);

test.each(examples.map((example) => [example.key, example] as const))(
  '%s',
  async (key, { expected, refused }) => {
    const answer = await (timeouts.get(key) ?? (ways[key] ?? refused)?.());
    if (!answer) throw new Error('This example is not provoked: add a way to');
    expect({ status: answer.status, body: answer.body }).toEqual(expected);
  },
);

test('every way leads to an example of the document', () => {
  const keys = examples.map(({ key }) => key);
  expect(Object.keys(ways).filter((key) => !keys.includes(key))).toEqual([]);
});

test('the other example of an event is acknowledged', async () => {
  expect(await event(events.other.value)).toMatchObject({ status: 200, body: { eventType: 'user.updated' } });
});

test('the sender of the webhook gets the answers of its address', () => {
  expect(document.webhooks['user.created'].post.responses).toEqual(document.paths[HOOK].post.responses);
});

test('the document is served to anybody, at one address and by no other method', async () => {
  const { status, body } = await get('/openapi.json');
  expect({ status, body }).toEqual({ status: 200, body: document });
  expect((await send(`${service.url}/openapi.json`, { method: 'HEAD' })).status).toBe(200);
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PROPFIND']) {
    const refused = await send(`${service.url}/openapi.json`, {
      method,
      headers: bearer(token('user_caller')),
    });
    expect(refused).toMatchObject({ status: 405, body: { message: 'Method not allowed' } });
    expect(refused.headers.get('allow')).toBe('GET, HEAD');
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

test('a method that an address lacks, and OPTIONS', async () => {
  expect((await send(`${service.url}${ME}`, { method: 'DELETE' })).status).toBe(405);
  expect((await send(`${service.url}${ME}`, { method: 'OPTIONS' })).status).toBe(204);
});

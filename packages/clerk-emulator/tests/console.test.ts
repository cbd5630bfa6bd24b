import { once } from 'node:events';
import { request } from 'node:http';
import { verifyToken } from '@clerk/backend';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Changes } from '../src/console/changes';
import type { Emulator, EmulatorOptions } from '../src/emulator';
import { SIGNING_SECRET, startProvider } from './helpers/emulator';
import { startHttpServer } from './helpers/http-server';
import { stopAfterAll, stopAfterTest } from './helpers/stop';

const Id = z.object({ id: z.string() });

const start = (options: Partial<EmulatorOptions> = {}) =>
  startProvider({ console: { preferredPort: 0 }, ...options });
const provider = stopAfterAll(await start());
const url = consoleOf(provider);

function consoleOf({ consoleUrl }: Emulator): string {
  if (consoleUrl === undefined) throw new Error('The emulator has no console.');
  return consoleUrl;
}

/**
 * Sends a request with the headers that the page of the console sends. `headers` overrides these headers. Unlike the headers of
 * `fetch`, `headers` may contain Host.
 */
async function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body ?? {});
  const content = method === 'GET' ? '' : text;
  const length = { 'content-length': String(Buffer.byteLength(content)) };
  const defaults = { origin: url, 'content-type': 'application/json' };
  const sent = request(`${url}${path}`, { method, headers: { ...defaults, ...length, ...headers } });
  sent.end(content);
  const [response] = await once(sent, 'response');
  let received = '';
  for await (const chunk of response.setEncoding('utf8')) received += chunk;
  const isJson = response.headers['content-type'] === 'application/json';
  return {
    status: response.statusCode,
    headers: response.headers,
    body: isJson ? JSON.parse(received) : received,
  };
}

/** Connects to the event stream of a console. Each call of `next` returns the next message. */
async function connect(to: string) {
  const aborted = new AbortController();
  const response = await fetch(`${to}/api/live`, { signal: aborted.signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const next = async (): Promise<{ event: string; data: Changes }> => {
    const [, event = '', data = '', rest = ''] = /^event: (.*)\ndata: (.*)\n\n([\s\S]*)$/m.exec(text) ?? [];
    if (event !== '') {
      text = rest;
      return { event, data: JSON.parse(data) };
    }
    const chunk = await reader?.read();
    if (chunk?.value === undefined) throw new Error('The stream has ended');
    text += chunk.value;
    return next();
  };
  /** Reads messages until one matches. */
  const until = async (matches: (changes: Changes) => boolean): Promise<Changes> => {
    const { data } = await next();
    return matches(data) ? data : until(matches);
  };
  return { next, until, close: () => aborted.abort() };
}

test('A page of the console gets a snapshot without password hashes when it connects, and afterwards only the changes', async () => {
  const before = provider.createUser({ email: 'before@example.com', password: 'correct horse' });
  const { next, close } = await connect(url);
  const first = await next();
  expect(first.event).toBe('snapshot');
  expect(first.data.users.put).toContainEqual({
    id: before.id,
    email: 'before@example.com',
    createdAt: Math.floor(before.createdAt),
    hasPassword: true,
  });
  expect(JSON.stringify(first.data)).not.toContain(before.password);

  const after = provider.createUser({ email: 'after@example.com' });
  const second = await next();
  expect(second.event).toBe('changes');
  expect(second.data.users.put.map(({ id }) => id)).toEqual([after.id]);
  expect(second.data.deliveries.put.map(({ type }) => type)).toEqual(['user.created']);

  provider.deleteUser(before.id);
  const third = await next();
  expect(third.data.users).toEqual({ put: [], gone: [before.id] });
  close();
});

test('If 200 changes follow each other closely, the console sends all of them in fewer than 100 messages', async () => {
  const { next, close } = await connect(url);
  await next();
  const seen: string[] = [];
  let messages = 0;
  const last = (async () => {
    while (!seen.includes('burst-199@example.com')) {
      const { data } = await next();
      seen.push(...data.users.put.map(({ email }) => email));
      messages += 1;
    }
  })();
  for (let count = 0; count < 200; count += 1) {
    provider.createUser({ email: `burst-${count}@example.com` });
    await new Promise((resolve) => setImmediate(resolve));
  }
  await last;
  expect(seen).toEqual(Array.from({ length: 200 }, (_, count) => `burst-${count}@example.com`));
  expect(messages).toBeLessThan(100);
  close();
});

test('The console can create and delete users, start and revoke sessions, and issue session tokens', async () => {
  const created = await send('POST', '/api/users', { email: ' Ada@Example.com ', password: 'correct horse' });
  expect(created.status).toBe(201);
  const { id } = Id.parse(created.body);
  expect(provider.store.users.get(id)).toMatchObject({
    email: 'ada@example.com',
    password: expect.any(String),
  });
  const plain = Id.parse((await send('POST', '/api/users', { email: 'plain@example.com' })).body);
  expect(provider.store.users.get(plain.id)?.password).toBeNull();

  const session = Id.parse((await send('POST', `/api/users/${id}/sessions`)).body);
  const { token, seconds } = z
    .object({ token: z.string(), seconds: z.number() })
    .parse((await send('POST', `/api/sessions/${session.id}/token`)).body);
  expect(seconds).toBe(60);
  expect(await verifyToken(token, { jwtKey: provider.publicKeyPem })).toMatchObject({
    sub: id,
    sid: session.id,
  });

  expect((await send('POST', `/api/sessions/${session.id}/revoke`)).body).toEqual({
    id: session.id,
    status: 'revoked',
  });
  const rejected = await send('POST', `/api/sessions/${session.id}/token`);
  expect(rejected).toMatchObject({ status: 409, body: { message: 'This session is over.' } });

  expect((await send('DELETE', `/api/users/${id}`)).status).toBe(200);
  expect(provider.store.users.get(id)).toBeUndefined();
});

test('A console request to create a user with invalid data gets a 422 that describes the problem', async () => {
  await send('POST', '/api/users', { email: 'taken@example.com' });
  const invalid = [
    [{ email: 'no address' }, { message: 'Invalid email address', parameter: 'email' }],
    [{ email: 'a@example.com', password: 'short' }, { parameter: 'password' }],
    [{ email: 'taken@example.com' }, { parameter: 'email_address' }],
    [{ email: 'a@example.com', admin: true }, { message: 'Unrecognized key: "admin"' }],
  ] as const;
  for (const [body, error] of invalid) {
    expect(await send('POST', '/api/users', body)).toMatchObject({ status: 422, body: error });
  }
  expect(provider.store.users.all().map(({ email }) => email)).not.toContain('a@example.com');
});

test('A console request for a missing resource gets a 404 whose message contains "was not found"', async () => {
  for (const [method, path] of [
    ['DELETE', '/api/users/user_none'],
    ['POST', '/api/users/user_none/sessions'],
    ['POST', '/api/sessions/sess_none/revoke'],
    ['POST', '/api/deliveries/msg_none/redeliver'],
    ['POST', '/api/snapshots/snap_none/restore'],
    ['GET', '/api/sample-events/none'],
    ['GET', '/no-such-file.js'],
    ['GET', '/../server.ts'],
    ['GET', '/%2e%2e/server.ts'],
  ] as const) {
    const { status, body } = await send(method, path);
    expect(status, path).toBe(404);
    expect(body.message, path).toContain('was not found');
  }
});

test('An open console page receives the changes when deliveries are paused, sent, signed incorrectly, redelivered or cleared', async () => {
  const received: (string | null)[] = [];
  const handler = ({ headers }: Request) => {
    received.push(headers.get('svix-id'));
    return new Response('thank you');
  };
  const endpoint = stopAfterTest(await startHttpServer(handler));
  const emulator = stopAfterTest(await start({ webhook: { url: endpoint.url, secret: SIGNING_SECRET } }));
  const to = consoleOf(emulator);
  const act = async (method: string, path: string, body: unknown = {}) => {
    const headers = { origin: to, 'content-type': 'application/json' };
    const response = await fetch(to + path, { method, headers, body: JSON.stringify(body) });
    return response.json();
  };
  const { until, next, close } = await connect(to);
  expect((await next()).data.endpoint).toEqual({
    url: endpoint.url,
    paused: false,
    signatureBroken: false,
  });

  await act('PATCH', '/api/endpoint', { paused: true });
  await until(({ endpoint: { paused } }) => paused);
  const { id } = Id.parse(await act('POST', '/api/deliveries', { type: 'a.b', data: { n: 1 } }));
  const waiting = await until(({ deliveries }) => deliveries.put.some((delivery) => delivery.id === id));
  expect(waiting.deliveries.put[0]).toMatchObject({ type: 'a.b', status: 'pending', attempts: [] });
  expect(JSON.parse(waiting.deliveries.put[0]?.body ?? '')).toMatchObject({ type: 'a.b', data: { n: 1 } });
  expect(received).toEqual([]);

  await act('PATCH', '/api/endpoint', { paused: false, signatureBroken: true });
  const delivered = await until(({ deliveries }) =>
    deliveries.put.some(({ status }) => status === 'delivered'),
  );
  expect(delivered.endpoint).toMatchObject({ paused: false, signatureBroken: true });
  expect(delivered.deliveries.put[0]?.attempts).toMatchObject([{ status: 200, answer: 'thank you' }]);

  await act('POST', `/api/deliveries/${id}/redeliver`);
  const again = await until(({ deliveries }) => deliveries.put.some(({ attempts }) => attempts.length === 2));
  expect(again.deliveries.put.map((delivery) => delivery.id)).toEqual([id]);
  expect(received).toEqual([id, id]);

  expect(await act('DELETE', '/api/deliveries')).toEqual({ cleared: 1 });
  expect((await until(({ deliveries }) => deliveries.gone.length > 0)).deliveries.gone).toEqual([id]);
  close();
});

test('The console shows an injected failure until the failure has affected a call. A failure that is deleted before its first call has no effect', async () => {
  const { until, next, close } = await connect(url);
  await next();
  const operation = 'GET /v1/environment';
  const added = Id.parse((await send('POST', '/api/failures', { operation, status: 503 })).body);
  const shown = await until(({ failures }) => failures.put.length > 0);
  expect(shown.failures.put).toEqual([{ id: added.id, operation, status: 503, calls: 1 }]);
  expect((await fetch(`${provider.url}/v1/environment`)).status).toBe(503);
  expect((await until(({ failures }) => failures.gone.length > 0)).failures.gone).toEqual([added.id]);

  const other = Id.parse((await send('POST', '/api/failures', { operation, disconnect: true })).body);
  expect((await send('DELETE', `/api/failures/${other.id}`)).status).toBe(200);
  expect((await fetch(`${provider.url}/v1/environment`)).status).toBe(200);
  expect((await send('GET', '/api/operations')).body).toEqual({ operations: provider.operations });
  close();
});

test('A console request to add an invalid failure gets a 422 that names the field', async () => {
  for (const [body, parameter] of [
    [{ operation: 'GET /v1/none', status: 500 }, 'operation'],
    [{ operation: 'GET /v1/users' }, 'status'],
    [{ operation: 'GET /v1/users', status: 500, calls: 0 }, 'calls'],
  ] as const) {
    expect(await send('POST', '/api/failures', body)).toMatchObject({ status: 422, body: { parameter } });
  }
});

test('The console shows the last 200 requests to the Clerk APIs, without their queries, headers and bodies', async () => {
  const emulator = stopAfterTest(await start());
  const secrets = ['query-secret', 'header-secret', 'cookie-secret', 'body-secret'];
  await fetch(`${emulator.url}/v1/client?__clerk_db_jwt=query-secret`, {
    headers: { cookie: 'a=cookie-secret' },
  });
  await fetch(`${emulator.url}/v1/users`, {
    method: 'POST',
    headers: { authorization: 'Bearer header-secret' },
    body: 'password=body-secret',
  });
  emulator.failures.add({ operation: 'GET /v1/environment', disconnect: true });
  await fetch(`${emulator.url}/v1/environment`).catch(() => undefined);
  await fetch(`${emulator.url}/v1/${'x'.repeat(1000)}`);
  const snapshotOf = async () => {
    const { next, close } = await connect(consoleOf(emulator));
    const { data } = await next();
    close();
    return data;
  };
  const data = await snapshotOf();
  expect(data.requests.put.map(({ method, path, status }) => [method, path.slice(0, 16), status])).toEqual([
    ['GET', '/v1/client', 200],
    ['POST', '/v1/users', 401],
    ['GET', '/v1/environment', null],
    ['GET', '/v1/xxxxxxxxxxxx', 401],
  ]);
  expect(data.requests.put.at(-1)?.path).toHaveLength(200);
  for (const secret of secrets) expect(JSON.stringify(data)).not.toContain(secret);

  for (let count = 0; count < 200; count += 1) await fetch(`${emulator.url}/v1/jwks`);
  const { requests } = await snapshotOf();
  expect(new Set(requests.put.map(({ path }) => path))).toEqual(new Set(['/v1/jwks']));
  expect(requests.put).toHaveLength(200);
});

test('A console request takes a snapshot, and another request restores it', async () => {
  const emulator = stopAfterTest(await start());
  const act = async (path: string) => {
    const headers = { origin: consoleOf(emulator), 'content-type': 'application/json' };
    return fetch(consoleOf(emulator) + path, { method: 'POST', headers, body: '{}' });
  };
  emulator.createUser({ email: 'snapshot@example.com' });
  const { id } = Id.parse(await (await act('/api/snapshots')).json());
  emulator.createUser({ email: 'later@example.com' });
  expect((await act(`/api/snapshots/${id}/restore`)).status).toBe(200);
  expect(emulator.store.users.all().map(({ email }) => email)).toEqual(['snapshot@example.com']);
});

test('The sample event user.created describes a new user, and other samples describe the newest existing user', async () => {
  const user = provider.createUser({ email: 'newest@example.com' });
  const sample = async (type: string) => (await send('GET', `/api/sample-events/${type}`)).body;
  expect(await sample('user.updated')).toMatchObject({ id: user.id, object: 'user' });
  expect(await sample('user.deleted')).toEqual({ id: user.id, object: 'user', deleted: true });
  expect(await sample('session.created')).toMatchObject({ object: 'session', user_id: user.id });
  const { id } = Id.parse(await sample('user.created'));
  expect(provider.store.users.get(id)).toBeUndefined();
  expect(Id.parse(await sample('user.created')).id).not.toBe(id);
});

test('To prevent DNS rebinding, the console responds 403 to a request whose Host header does not name this machine', async () => {
  const { port } = new URL(url);
  for (const path of ['/', '/main.js', '/api/live', '/api/sample-events/user.created']) {
    for (const host of [
      `evil.example:${port}`,
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      '192.168.0.1',
    ]) {
      const { status, body } = await send('GET', path, undefined, { host });
      expect([path, host, status]).toEqual([path, host, 403]);
      expect(body.message).toContain('localhost');
    }
  }
  for (const host of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
    expect((await send('GET', '/', undefined, { host })).status).toBe(200);
  }
});

test('A page of another site or origin cannot read or change data of the console', async () => {
  const email = 'forged@example.com';
  const { port } = new URL(url);
  const forged: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `http://localhost:${port}` },
    { origin: url.replace(port, '3000') },
    { origin: '' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' },
  ];
  for (const headers of forged) {
    expect([headers, (await send('POST', '/api/users', { email }, headers)).status]).toEqual([headers, 403]);
  }
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'text/json;application/json', '']) {
    const response = await send('POST', '/api/users', { email }, { 'content-type': type });
    expect([type, response.status]).toEqual([type, 415]);
  }
  const embedded = { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' };
  expect((await send('GET', '/api/live', undefined, embedded)).status).toBe(403);
  expect(provider.store.users.all().map((user) => user.email)).not.toContain(email);
  const { headers } = await send('GET', '/', undefined, { origin: 'https://evil.example' });
  expect(headers['access-control-allow-origin']).toBeUndefined();
});

test('The console rejects a body that is too large, not JSON or not a valid event', async () => {
  expect((await send('POST', '/api/deliveries', { type: 'a', data: { x: 'x'.repeat(70_000) } })).status).toBe(
    413,
  );
  expect((await send('POST', '/api/deliveries', '{"type":')).status).toBe(400);
  expect((await send('POST', '/api/deliveries', '[]')).status).toBe(400);
  expect((await send('POST', '/api/deliveries', { type: '', data: {} })).status).toBe(422);
  expect((await send('POST', '/api/deliveries', { type: 'a', data: 'text' })).status).toBe(422);
});

test('The response to a GET request for the console forbids inline scripts, framing and caching', async () => {
  for (const path of [
    '/',
    '/main.js',
    '/preact.js',
    '/console.css',
    '/icon.svg',
    '/api/sample-events/user.created',
    '/none',
  ]) {
    const { headers } = await send('GET', path);
    expect(headers['content-security-policy']).toContain("default-src 'none'; script-src 'self';");
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    });
  }
  expect((await send('GET', '/')).body).not.toMatch(/<script(?![^>]*src=)|style=| on\w+=/);
});

test('The server of the Clerk APIs does not serve the console, and the console does not serve the Frontend API', async () => {
  expect(provider.url).not.toBe(url);
  for (const path of ['/', '/main.js', '/api/live', '/api/sample-events/user.created']) {
    expect((await fetch(provider.url + path)).status).toBe(401);
  }
  expect((await send('GET', '/v1/client')).status).toBe(404);
});

test('The console starts only if the option `console` is set, and uses another port if the preferred port is in use', async () => {
  const first = await start();
  const preferredPort = Number(new URL(consoleOf(first)).port);
  const second = stopAfterTest(await start({ console: { preferredPort } }));
  expect(new URL(consoleOf(second)).port).not.toBe(String(preferredPort));
  await first.stop();
  const third = stopAfterTest(await start({ console: { preferredPort } }));
  expect(new URL(consoleOf(third)).port).toBe(String(preferredPort));
  expect(stopAfterTest(await startProvider()).consoleUrl).toBeUndefined();
});

test('Stopping the emulator ends the event streams of open console pages', async () => {
  const emulator = await start();
  const { next } = await connect(consoleOf(emulator));
  await next();
  await emulator.stop();
  await expect(next()).rejects.toThrow();
});

import { verifyToken } from '@clerk/backend';
import { Webhook } from 'svix';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { State } from '../src/console/state';
import type { EmulatorOptions } from '../src/emulator';
import { SIGNING_SECRET, startProvider } from './helpers/emulator';
import { startHttpServer } from './helpers/http-server';
import { sendRequest } from './helpers/requests';
import { stopAfterAll, stopAfterTest } from './helpers/stop';

const Id = z.object({ id: z.string() });

/**
 * Starts an emulator with a console. `send` sends a request with the headers that the page of the console sends. `headers`
 * overrides these headers.
 */
async function start(options: Partial<EmulatorOptions> = {}) {
  const emulator = await startProvider({ console: { preferredPort: 0 }, ...options });
  const url = emulator.consoleUrl ?? '';
  const send = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body ?? {});
    const defaults = { origin: url, 'content-type': 'application/json' };
    return sendRequest(method, url + path, { ...defaults, ...headers }, method === 'GET' ? '' : text);
  };
  return { emulator, url, send, stop: emulator.stop };
}

const { emulator: provider, url, send } = stopAfterAll(await start());

/** Connects to the event stream of a console. `until` reads states until one matches. */
async function connect(to: string) {
  const aborted = new AbortController();
  const response = await fetch(`${to}/api/state`, { signal: aborted.signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const next = async (): Promise<State> => {
    const [, data = '', rest = ''] = /^data: (.*)\n\n([\s\S]*)$/m.exec(text) ?? [];
    if (data !== '') {
      text = rest;
      return JSON.parse(data);
    }
    const chunk = await reader?.read();
    if (chunk?.value === undefined) throw new Error('The stream has ended');
    text += chunk.value;
    return next();
  };
  const until = async (matches: (state: State) => boolean): Promise<State> => {
    const state = await next();
    return matches(state) ? state : until(matches);
  };
  return { next, until, close: () => aborted.abort() };
}

test('A page of the console gets the state without password hashes, and gets it again after changes', async () => {
  const { id, password } = provider.createUser({ email: 'before@example.com', password: 'correct horse' });
  const { next, until, close } = await connect(url);
  const first = await next();
  expect(first.users).toMatchObject([{ id, email: 'before@example.com', hasPassword: true, sessions: [] }]);
  expect(JSON.stringify(first)).not.toContain(password);
  const session = provider.createSession(id);
  provider.createUser({ email: 'after@example.com' });
  const second = await until(({ users }) => users.length === 2);
  expect(second.users).toMatchObject([
    { email: 'after@example.com' },
    { id, sessions: [{ id: session.id }] },
  ]);
  expect(second.deliveries.map(({ type }) => type)).toEqual([
    'user.created',
    'session.created',
    'user.created',
  ]);
  close();
});

test('The console can create and delete users, start and revoke sessions, and issue session tokens', async () => {
  const created = await send('POST', '/api/users', { email: ' Ada@Example.com ', password: 'correct horse' });
  expect(created.status).toBe(201);
  const { id } = Id.parse(created.body);
  expect(provider.store.users.get(id)?.email).toBe('ada@example.com');
  const session = Id.parse((await send('POST', `/api/users/${id}/sessions`)).body);
  const { token } = z
    .object({ token: z.string() })
    .parse((await send('POST', `/api/sessions/${session.id}/token`)).body);
  expect(await verifyToken(token, { jwtKey: provider.publicKeyPem })).toMatchObject({ sub: id });
  const revoked = await send('POST', `/api/sessions/${session.id}/revoke`);
  expect(revoked.body).toEqual({ id: session.id, status: 'revoked' });
  const rejected = await send('POST', `/api/sessions/${session.id}/token`);
  expect(rejected).toMatchObject({ status: 409, body: { message: 'This session is over.' } });
  expect((await send('DELETE', `/api/users/${id}`)).status).toBe(200);
  expect(provider.store.users.get(id)).toBeUndefined();
});

test('A console request that is invalid gets a 4xx that describes the problem', async () => {
  provider.createUser({ email: 'taken@example.com' });
  for (const [path, body, status, message] of [
    ['/api/users', { email: 'no address' }, 422, 'Invalid email address'],
    ['/api/users', { email: 'a@example.com', password: 'short' }, 422, 'Passwords must be 8'],
    ['/api/users', { email: 'taken@example.com' }, 422, 'is taken'],
    ['/api/users/user_none/sessions', {}, 404, 'was not found'],
    ['/api/deliveries/msg_none/redeliver', {}, 404, 'was not found'],
    ['/api/failures', { operation: 'GET /v1/none', status: 500 }, 422, 'no such operation'],
    ['/api/deliveries', { type: 'a', data: 'text' }, 422, 'expected record'],
    ['/api/deliveries', '{"type":', 400, 'not a JSON object'],
    ['/api/deliveries', { type: 'a', data: { x: 'x'.repeat(70_000) } }, 413, 'too large'],
  ] as const) {
    const response = await send('POST', path, body);
    expect([path, response.status]).toEqual([path, status]);
    expect(response.body.message).toContain(message);
  }
});

test('Deliveries wait, repeat and have invalid signatures as set in the console. A redelivery has the same id', async () => {
  const received: { readonly id: string | null; readonly isValid: boolean }[] = [];
  const endpoint = stopAfterTest(
    await startHttpServer(async (request) => {
      const body = await request.text();
      let isValid = true;
      try {
        new Webhook(SIGNING_SECRET).verify(body, Object.fromEntries(request.headers));
      } catch {
        isValid = false;
      }
      received.push({ id: request.headers.get('svix-id'), isValid });
      return new Response('thank you');
    }),
  );
  const { emulator, send, url } = stopAfterTest(
    await start({ webhook: { url: endpoint.url, secret: SIGNING_SECRET } }),
  );
  const { until, close } = await connect(url);
  await send('PATCH', '/api/endpoint', { paused: true, signatureBroken: true, copies: 2 });
  const { id } = Id.parse((await send('POST', '/api/deliveries', { type: 'a.b', data: { n: 1 } })).body);
  const { deliveries } = await until(({ endpoint, deliveries }) => endpoint.paused && deliveries.length > 0);
  expect(deliveries).toMatchObject([{ id, type: 'a.b', status: 'pending', attempts: [] }]);
  expect(received).toEqual([]);

  await send('PATCH', '/api/endpoint', { paused: false });
  await emulator.webhooks.settled(id);
  await send('PATCH', '/api/endpoint', { signatureBroken: false, copies: 1 });
  await send('POST', `/api/deliveries/${id}/redeliver`);
  await emulator.webhooks.settled(id);
  expect(received).toEqual([
    { id, isValid: false },
    { id, isValid: false },
    { id, isValid: true },
  ]);
  expect((await send('PATCH', '/api/endpoint', { delaySeconds: 3600 })).body).toMatchObject({ copies: 1 });
  const late = emulator.webhooks.send('a.late', {});
  expect(emulator.store.deliveries.get(late.id)?.nextTryAt).toBe(late.createdAt + 3_600_000);
  close();
});

test('The user of an example event does not exist, and each type that the page offers has an example', async () => {
  const page = String((await send('GET', '/')).body);
  const types = [...page.matchAll(/<option>(.*)<\/option>/g)].map(([, type]) => type);
  expect(types).toContain('user.created');
  for (const type of types) {
    const { status, body } = await send('GET', `/api/example-events/${type}`);
    expect(status, type).toBe(200);
    expect(provider.store.users.get(body.id), type).toBeUndefined();
  }
  expect((await send('GET', '/api/example-events/none')).status).toBe(404);
});

test('The console shows the last 200 requests to the Clerk APIs, without their queries, headers and bodies', async () => {
  const { emulator, url } = stopAfterTest(await start());
  const secrets = ['query-secret', 'header-secret', 'body-secret'];
  await fetch(`${emulator.url}/v1/client?__clerk_db_jwt=query-secret`);
  await fetch(`${emulator.url}/v1/users`, {
    method: 'POST',
    headers: { authorization: 'Bearer header-secret' },
    body: 'password=body-secret',
  });
  const { next, until, close } = await connect(url);
  const state = await next();
  expect(state.requests).toMatchObject([
    { method: 'POST', path: '/v1/users', status: 401 },
    { method: 'GET', path: '/v1/client', status: 200 },
  ]);
  for (const secret of secrets) expect(JSON.stringify(state)).not.toContain(secret);
  for (let count = 0; count < 201; count += 1) await fetch(`${emulator.url}/v1/jwks`);
  expect((await until(({ counts }) => counts.requests === 200)).requests.at(-1)?.path).toBe('/v1/jwks');
  close();
});

test('To prevent DNS rebinding, the console responds 403 to a request whose Host header does not name this machine', async () => {
  const { port } = new URL(url);
  for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example', '192.168.0.1']) {
    for (const path of ['/', '/api/state']) {
      expect((await send('GET', path, undefined, { host })).status, host).toBe(403);
    }
  }
  for (const host of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
    expect((await send('GET', '/', undefined, { host })).status, host).toBe(200);
  }
});

test('A page of another site or origin cannot read or change data of the console', async () => {
  const email = 'forged@example.com';
  const { port } = new URL(url);
  const forged: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `http://localhost:${port}` },
    { origin: '' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' },
  ];
  for (const headers of forged) {
    expect([headers, (await send('POST', '/api/users', { email }, headers)).status]).toEqual([headers, 403]);
  }
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'text/json;application/json', '']) {
    const response = await send('POST', '/api/users', { email }, { 'content-type': type });
    expect([type, response.status]).toEqual([type, 415]);
  }
  const embedded = { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' };
  expect((await send('GET', '/api/state', undefined, embedded)).status).toBe(403);
  expect(provider.store.users.find((user) => user.email === email)).toBeUndefined();
});

test('The response to a GET request for the console forbids inline scripts, framing and caching', async () => {
  for (const path of ['/', '/main.js', '/preact.js', '/api/example-events/user.created', '/none']) {
    const { headers } = await send('GET', path);
    expect(headers['content-security-policy']).toContain("default-src 'none'; script-src 'self';");
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  }
  expect((await send('GET', '/../server.ts')).status).toBe(404);
});

test('The console starts only if the option `console` is set, and uses another port if the preferred port is in use', async () => {
  const preferredPort = Number(new URL(url).port);
  const second = stopAfterTest(await start({ console: { preferredPort } }));
  expect(new URL(second.url).port).not.toBe(String(preferredPort));
  expect(stopAfterTest(await startProvider()).consoleUrl).toBeUndefined();
});

test('Stopping the emulator ends the event streams of open console pages', async () => {
  const { emulator, url } = await start();
  const { next } = await connect(url);
  await next();
  await emulator.stop();
  await expect(next()).rejects.toThrow();
});

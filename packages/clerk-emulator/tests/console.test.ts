import { expect, test } from 'vitest';
import type { State } from '../src/console/state';
import type { EmulatorOptions } from '../src/emulator';
import { startProvider } from './helpers/emulator';
import { sendRequest } from './helpers/requests';
import { stopAfterAll, stopAfterTest } from './helpers/stop';

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

test('The state of the console has the newest rows first, and no password hash', async () => {
  const { password } = provider.createUser({ email: 'before@example.com', password: 'correct horse' });
  provider.createUser({ email: 'after@example.com' });
  const { next, close } = await connect(url);
  const state = await next();
  expect(state.users.map(({ email }) => email)).toEqual(['after@example.com', 'before@example.com']);
  expect(JSON.stringify(state)).not.toContain(password);
  close();
});

test('A console request that is invalid gets a 4xx that describes the problem', async () => {
  for (const [path, body, status, message] of [
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

test('To prevent DNS rebinding, the console rejects a Host header that does not name this machine', async () => {
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
  const user = { email_address: [email], skip_password_requirement: true };
  const { port } = new URL(url);
  const forged: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `http://localhost:${port}` },
    { origin: '' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' },
  ];
  for (const headers of forged) {
    expect([headers, (await send('POST', '/v1/users', user, headers)).status]).toEqual([headers, 403]);
  }
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'text/json;application/json', '']) {
    const response = await send('POST', '/v1/users', user, { 'content-type': type });
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

test('The console is optional, and uses another port if the preferred port is in use', async () => {
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

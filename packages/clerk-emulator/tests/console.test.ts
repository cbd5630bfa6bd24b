import { expect, test } from 'vitest';
import type { State } from '../src/console/state';
import type { EmulatorOptions } from '../src/emulator';
import { startForTest, startProvider } from './helpers/emulator';
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
    const defaults = { origin: url, 'content-type': 'application/json' };
    return sendRequest(
      method,
      url + path,
      { ...defaults, ...headers },
      method === 'GET' ? '' : JSON.stringify(body ?? {}),
    );
  };
  return { emulator, url, send, stop: emulator.stop };
}

const { emulator: provider, url, send } = stopAfterAll(await start());

/** Returns the first state in the event stream of a console. */
async function readState(consoleUrl: string): Promise<State> {
  const { body } = await fetch(`${consoleUrl}/api/state`);
  let text = '';
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.endsWith('\n\n')) return JSON.parse(text.replace('data: ', ''));
  }
  throw new Error('The stream has ended');
}

test('The state of the console has the newest rows first, and no password hash', async () => {
  const { password } = provider.createUser({ email: 'before@example.com', password: 'correct horse' });
  provider.createUser({ email: 'after@example.com' });
  const state = await readState(url);
  expect(state.users.map(({ email }) => email)).toEqual(['after@example.com', 'before@example.com']);
  expect(JSON.stringify(state)).not.toContain(password);
});

test('A console request that is invalid gets a 4xx that describes the problem', async () => {
  for (const [path, body, status, message] of [
    ['/api/deliveries/msg_none/redeliver', {}, 404, 'was not found'],
    ['/v1/emulator/failures', { operation: 'GET /v1/none', status: 500 }, 422, 'no such operation'],
    ['/api/deliveries', { type: 'a', data: 'text' }, 422, 'expected record'],
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
  const state = await readState(url);
  expect(state.requests).toMatchObject([
    { method: 'POST', path: '/v1/users', status: 401 },
    { method: 'GET', path: '/v1/client', status: 200 },
  ]);
  for (const secret of secrets) expect(JSON.stringify(state)).not.toContain(secret);
  for (let count = 0; count < 201; count += 1) await fetch(`${emulator.url}/v1/jwks`);
  const { counts, requests } = await readState(url);
  expect([counts.requests, requests.at(-1)?.path]).toEqual([200, '/v1/jwks']);
});

test('To prevent DNS rebinding, the console rejects a Host header that does not name this machine', async () => {
  for (const path of ['/', '/api/state'])
    expect((await send('GET', path, undefined, { host: 'evil.example' })).status, path).toBe(403);
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
  expect((await startForTest()).consoleUrl).toBeUndefined();
});

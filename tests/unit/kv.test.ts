import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { ClientRequest, createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { VercelKV } from '@vercel/kv';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { log } from '#lib/log';
import { kvRequester, withKv } from '#lib/storage/kv';
import { listen } from '../../dev/system/listen';
import { BUILD_TIME_VALUES } from '../harness/build';

const TIMEOUT_MS = 500;

/** A request that the fake KV store of this test has received. */
interface StoreRequest {
  readonly commands: unknown[];
  readonly authorization: string | undefined;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Responds to each request of the KV client. By default, the result of a command is its last argument. */
let respond: (storeRequest: StoreRequest) => void;
const storeRequests: StoreRequest[] = [];
const server = createServer(async (request, response) => {
  const storeRequest = {
    commands: JSON.parse(await text(request)),
    authorization: request.headers.authorization,
    request,
    response,
  };
  storeRequests.push(storeRequest);
  respond(storeRequest);
});
const echo = ({ commands, response }: StoreRequest) =>
  response.end(JSON.stringify(commands.map((command) => ({ result: [command].flat().at(-1) }))));

let kv: VercelKV;

beforeEach(async () => {
  const port = await listen(server);
  respond = echo;
  storeRequests.length = 0;
  // Only a test that advances the clock causes a timeout. A slow machine does not.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  kv = new VercelKV(
    kvRequester({ url: `http://127.0.0.1:${port}/`, token: 'the-token', timeoutMs: TIMEOUT_MS }),
  );
});
afterEach(async () => {
  vi.useRealTimers();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

/** Waits for one event loop iteration. */
const nextIteration = () => new Promise(setImmediate);
/** Makes the connection of the next request fail with this error code, immediately or when the response starts. */
function breakNextRequest(code: string, when: 'immediately' | 'response' = 'immediately'): void {
  const onStart = (message: unknown) => {
    unsubscribe('http.client.request.start', onStart);
    const request = Reflect.get(Object(message), 'request');
    if (!(request instanceof ClientRequest)) throw new Error('The message contains no request');
    const fail = () => request.socket?.destroy(Object.assign(new Error(code), { code }));
    if (when === 'response') request.once('response', fail);
    else fail();
  };
  subscribe('http.client.request.start', onStart);
}
/** Returns the number of connections that the requests have used so far. */
const sockets = () => new Set(storeRequests.map(({ request }) => request.socket)).size;

test('Commands of one event loop iteration share one authorized request, and each command gets its own result', async () => {
  expect(await Promise.all([kv.get('one'), kv.get('two'), kv.set('key', 'three', { ex: 600 })])).toEqual([
    'one',
    'two',
    600,
  ]);
  expect(storeRequests.map(({ commands, authorization }) => ({ commands, authorization }))).toEqual([
    {
      commands: [
        ['get', 'one'],
        ['get', 'two'],
        ['set', 'key', 'three', 'ex', 600],
      ],
      authorization: 'Bearer the-token',
    },
  ]);
});

test.each(['123', 'true', 'null', '"quoted"', '{"a":1}', '', 'ünïcode ☃', 'OK'])(
  'The KV client returns a string unchanged: %j',
  async (value) => {
    expect(await kv.get(value)).toBe(value);
  },
);

test('The KV client returns null and lists unchanged. It converts a hash to an object', async () => {
  respond = ({ response }) => response.end('[{"result":null}]');
  expect(await kv.get('absent')).toBeNull();
  respond = ({ response }) => response.end('[{"result":["a",1]}]');
  expect(await kv.get('list')).toEqual(['a', 1]);
  respond = ({ response }) => response.end('[{"result":["field","value"]}]');
  expect(await kv.hgetall('hash')).toEqual({ field: 'value' });
});

test('A failed command rejects with the error of the KV store and does not affect the other commands of the request', async () => {
  respond = ({ response }) => response.end('[{"error":"WRONGTYPE of that key"},{"result":"two"}]');
  const [one, two] = await Promise.allSettled([kv.get('one'), kv.get('two')]);
  expect(one).toMatchObject({ reason: { message: expect.stringContaining('WRONGTYPE of that key') } });
  expect(two).toMatchObject({ value: 'two' });
});

describe('Invalid responses', () => {
  test.each<[string, (storeRequest: StoreRequest) => void]>([
    ['status 500', ({ response }) => response.writeHead(500).end('internal error')],
    ['status 503 with a well-formed body', ({ response }) => response.writeHead(503).end('[{"result":"x"}]')],
    ['status 401', ({ response }) => response.writeHead(401).end('{"error":"WRONGPASS"}')],
    ['a body that is not JSON', ({ response }) => response.end('<html>')],
    ['an object instead of a list', ({ response }) => response.end('{"result":"x"}')],
    ['too few results', ({ response }) => response.end('[]')],
    ['too many results', ({ response }) => response.end('[{"result":"x"},{"result":"y"}]')],
    ['an entry without result and error', ({ response }) => response.end('[{}]')],
    [
      'an error instead of the list',
      ({ response }) => response.end('{"error":"ERR max requests limit exceeded"}'),
    ],
    [
      'a body above the size limit',
      ({ response }) => response.end(`[{"result":"${'x'.repeat(2_000_000)}"}]`),
    ],
    ['a connection reset', ({ request }) => request.socket.resetAndDestroy()],
    [
      'an incomplete body',
      ({ request, response }) => response.write('[{"resu', () => request.socket.resetAndDestroy()),
    ],
  ])(
    'After an invalid or missing response, a call of the KV client rejects and is not retried: %s',
    async (_what, behave) => {
      respond = behave;
      await expect(kv.get('key')).rejects.toThrow();
      expect(storeRequests).toHaveLength(1);
    },
  );

  test.each([200, 400, 429])(
    'If the KV store sends one error for the whole request with the status %i, the cause of the rejection contains this error',
    async (status) => {
      respond = ({ response }) =>
        response.writeHead(status).end('{"error":"ERR max requests limit exceeded"}');
      await expect(kv.get('key')).rejects.toMatchObject({
        message: 'KV store rejected the request',
        cause: { message: 'ERR max requests limit exceeded' },
      });
    },
  );

  test.each<[string, (storeRequest: StoreRequest) => void, object]>([
    [
      'the status',
      ({ response }) => response.writeHead(503).end('<html>'),
      { message: 'KV store rejected the request', code: 'HTTP_503' },
    ],
    [
      'the number of results',
      ({ response }) => response.end('[]'),
      { message: 'KV store sent a different number of results' },
    ],
    [
      'the length of the body',
      ({ response }) => response.end(`[{"result":"${'x'.repeat(1024 * 1024)}"}]`),
      { message: 'KV response is too long' },
    ],
    [
      'the end of the connection',
      ({ request, response }) => response.write('[{"resu', () => request.socket.destroy()),
      { message: 'aborted' },
    ],
  ])('The error of an invalid response names the problem: %s', async (_problem, behave, error) => {
    respond = behave;
    await expect(kv.get('key')).rejects.toMatchObject(error);
  });

  test('The KV client accepts a response of exactly 1 MiB', async () => {
    const value = 'x'.repeat(1024 * 1024 - '[{"result":""}]'.length);
    respond = ({ response }) => response.end(JSON.stringify([{ result: value }]));
    expect(await kv.get('key')).toBe(value);
  });

  test('A call of the KV client rejects if the connection is refused', async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await expect(kv.get('key')).rejects.toThrow('ECONNREFUSED');
    await listen(server);
  });
});

describe('A store that does not respond', () => {
  test.each<[string, (storeRequest: StoreRequest) => void]>([
    ['no response', () => undefined],
    ['an incomplete response', ({ response }) => response.write('[{"result":')],
    [
      'another protocol instead of a response',
      ({ request }) =>
        request.socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    ],
  ])('A call of the KV client rejects after 500 ms and is not retried: %s', async (_what, behave) => {
    respond = behave;
    const ended = vi.fn();
    const call = kv.get('key').catch(ended);
    while (storeRequests.length === 0) await nextIteration();
    vi.advanceTimersByTime(TIMEOUT_MS - 1);
    await nextIteration();
    expect(ended).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    await call;
    expect(ended).toHaveBeenCalledTimes(1);
    expect(storeRequests).toHaveLength(1);
  });

  test('If a call of the KV client times out, the client closes the connection of the call', async () => {
    respond = () => undefined;
    const call = kv.get('key').catch((error: Error) => error.message);
    while (storeRequests.length === 0) await nextIteration();
    const closed = once(storeRequests[0]?.request.socket ?? server, 'close');
    vi.advanceTimersByTime(TIMEOUT_MS);
    expect(await call).toBe('KV store did not respond');
    await closed;
  });

  test('The KV client clears the timer of a call after the response', async () => {
    await kv.get('key');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('If a call of the KV client times out, the client also closes its idle connections', async () => {
    await Promise.all([kv.get('one'), nextIteration().then(() => kv.get('two'))]);
    await nextIteration();
    respond = () => undefined;
    const call = kv.get('key').catch(() => undefined);
    while (storeRequests.length === 2) await nextIteration();
    expect(sockets(), 'the call uses one of two connections').toBe(2);
    vi.advanceTimersByTime(TIMEOUT_MS);
    await call;
    respond = echo;
    expect(await kv.get('key')).toBe('key');
    expect(sockets(), 'a new connection').toBe(3);
  });
});

describe('Keep-alive connections', () => {
  test('Sequential calls of the KV client use the same connection', async () => {
    for (let call = 0; call < 5; call += 1) await kv.get('key');
    expect(sockets()).toBe(1);
  });

  test('A call of the KV client succeeds even if the KV store has closed several idle connections', async () => {
    await Promise.all([
      kv.get('one'),
      nextIteration().then(() => kv.get('two')),
      nextIteration()
        .then(nextIteration)
        .then(() => kv.get('three')),
    ]);
    await nextIteration();
    const before = sockets();
    expect(before).toBeGreaterThan(1);
    for (const { request } of storeRequests) request.socket.resetAndDestroy();
    expect(await kv.get('key')).toBe('key');
    expect(sockets()).toBe(before + 1);
  });

  test('If the KV store closes a reused connection before it responds to a call, the KV client sends the call a second time', async () => {
    await kv.get('key');
    respond = ({ request }) => {
      respond = echo;
      request.socket.resetAndDestroy();
    };
    expect(await kv.get('key')).toBe('key');
    expect(storeRequests).toHaveLength(3);
  });

  test('If the second attempt of a call times out, the KV client closes the connection of this attempt', async () => {
    await kv.get('key');
    respond = ({ request }) => {
      respond = () => undefined;
      request.socket.resetAndDestroy();
    };
    const call = kv.get('key').catch((error: Error) => error.message);
    while (storeRequests.length < 3) await nextIteration();
    const closed = once(storeRequests[2]?.request.socket ?? server, 'close');
    vi.advanceTimersByTime(TIMEOUT_MS);
    expect(await call).toBe('KV store did not respond');
    await closed;
  });

  test('If several connections are idle, the KV client uses the connection that became idle last', async () => {
    const pending: StoreRequest[] = [];
    respond = (storeRequest) => pending.push(storeRequest);
    const calls = [kv.get('one'), nextIteration().then(() => kv.get('two'))];
    while (pending.length < 2) await nextIteration();
    const [first, second] = pending;
    if (!first || !second) throw new Error('The calls did not arrive');
    echo(first);
    await calls[0];
    echo(second);
    await calls[1];
    respond = echo;
    for (let call = 0; call < 3; call += 1) {
      await nextIteration();
      await kv.get('key');
      expect(storeRequests.at(-1)?.request.socket).toBe(second.request.socket);
    }
  });

  test('The KV client does not send a call again if a reused connection fails after the response has started', async () => {
    await kv.get('key');
    respond = ({ response }) => response.write('[{"resu');
    breakNextRequest('ECONNRESET', 'response');
    await expect(kv.get('key')).rejects.toThrow('ECONNRESET');
    respond = echo;
    expect(await kv.get('later')).toBe('later');
    expect(storeRequests).toHaveLength(3);
  });

  test('A call on a reused connection is not retried after a response that is not HTTP', async () => {
    await kv.get('key');
    respond = ({ request }) => request.socket.end('not HTTP\r\n\r\n');
    await expect(kv.get('key')).rejects.toThrow('Parse Error');
    expect(storeRequests).toHaveLength(2);
  });

  test('A call on a reused connection is sent again if the system reports a broken pipe', async () => {
    await kv.get('key');
    breakNextRequest('EPIPE');
    expect(await kv.get('key')).toBe('key');
    expect(sockets(), 'a second connection').toBe(2);
  });
});

test('Without telemetry, withKv() logs an outage and passes the error of the store through', async () => {
  for (const [name, value] of Object.entries(BUILD_TIME_VALUES)) vi.stubEnv(name, value);
  const warn = vi.spyOn(log, 'warn').mockReturnValue();
  for (let call = 0; call < 5; call += 1)
    await expect(withKv(() => Promise.reject(new Error('failed by a test')))).rejects.toThrow(
      'failed by a test',
    );
  expect(warn).toHaveBeenCalledExactlyOnceWith({ error: expect.anything() }, 'cache skipped');
  vi.unstubAllEnvs();
});

test('With an invalid URL, a call of the KV client rejects, and the timeout of the call causes no uncaught exception', async () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  process.on('uncaughtException', note);
  const url = 'http://default:50%off@127.0.0.1:1';
  const unusable = new VercelKV(kvRequester({ url, token: 'the-token', timeoutMs: 1 }));
  await expect(unusable.ping()).rejects.toThrow();
  await vi.advanceTimersByTimeAsync(5);
  process.off('uncaughtException', note);
  expect(uncaught).toEqual([]);
});

test('The KV client sends a command to /pipeline as a POST request with a JSON body and the length of the body in bytes', async () => {
  await kv.get('ü');
  const { method, url, headers } = storeRequests[0]?.request ?? {};
  expect([method, url]).toEqual(['POST', '/pipeline']);
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'content-length': '14' });
});

test('The connection to a store with an https URL uses TLS', async () => {
  const received: number[] = [];
  const plain = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (chunk) => {
      received.push(chunk[0] ?? 0);
      socket.destroy();
    });
  });
  const url = `https://127.0.0.1:${await listen(plain)}`;
  const secure = new VercelKV(kvRequester({ url, token: 'the-token', timeoutMs: TIMEOUT_MS }));
  await expect(secure.get('key')).rejects.toThrow();
  plain.close();
  // 0x16 is the type of the TLS record that starts a handshake.
  expect(received).toEqual([0x16]);
});

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { httpServer } from '#lib/server/http-server';
import { listen } from '../../dev/system/listen';

vi.mock('node:timers/promises', () => ({ setTimeout: vi.fn() }));

/** Ends the pause that is the first step of `drain()`. During the pause, the server still accepts new connections. */
let endPause = () => {};
beforeEach(() => {
  vi.mocked(pause).mockImplementation(
    () =>
      new Promise((resolve) => {
        endPause = () => resolve(undefined);
      }),
  );
});
afterEach(() => {
  vi.restoreAllMocks();
});

async function startServer() {
  const { server, drain } = httpServer(async (request, response) => void response.end(`${request.url} `));
  const port = await listen(server);
  const clients: Socket[] = [];
  onTestFinished(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  /** Opens a connection, sends a request and returns the response. Returns an empty text if there is no response. */
  const get = (path: string): Promise<string> => {
    const client = connect(port, '127.0.0.1');
    clients.push(client);
    client.on('error', () => undefined);
    let received = '';
    client.setEncoding('utf8').on('data', (chunk) => {
      received += chunk;
    });
    client.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    return new Promise((resolve) => client.once('close', () => resolve(received)));
  };
  return { server, drain, get };
}

test('During the first 100 ms of drain(), new connections get responses', async () => {
  const { server, drain, get } = await startServer();
  const drained = drain();
  expect(pause).toHaveBeenCalledExactlyOnceWith(100);
  for (const path of ['/users/a', '/users/b']) expect(await get(path)).toContain(path);
  endPause();
  await drained;
  expect(server.listening).toBe(false);
});

test('A connection gets a response if the client opened it before drain() stopped listening', async () => {
  const { drain, get } = await startServer();
  const drained = drain();
  // The client connects after the pause. At that time, `drain()` has not stopped listening yet.
  endPause();
  expect(await get('/users/a')).toContain('/users/a');
  await drained;
});

test('drain() accepts connections until an event loop iteration brings no new connection', async () => {
  const { drain, get, server } = await startServer();
  const responses: Promise<string>[] = [];
  server.on('connection', () => {
    if (responses.length < 5) responses.push(get(`/users/${responses.length}`));
  });
  const drained = drain();
  endPause();
  await get('/users/a');
  await drained;
  expect((await Promise.all(responses)).map((received) => /\/users\/\d/.exec(received)?.[0])).toEqual([
    '/users/0',
    '/users/1',
    '/users/2',
    '/users/3',
    '/users/4',
  ]);
});

test('drain() stops listening after 5.5 s, even if clients continue to open connections', async () => {
  const { drain, get, server } = await startServer();
  let time = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => time);
  let opened = 0;
  let isDrained = false;
  server.on('connection', () => {
    opened += 1;
    time += 1_000;
    if (!isDrained) void get('/users/a');
  });
  const drained = drain();
  endPause();
  void get('/users/a');
  await once(server, 'close');
  isDrained = true;
  await drained;
  expect(opened).toBeGreaterThanOrEqual(6);
});

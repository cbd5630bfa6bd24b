import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { log } from '#lib/log';
import { httpServer } from '#lib/server/http-server';
import { rejectionOfError } from '#lib/server/rejection';
import { listen } from '../../dev/system/listen';

let info = vi.spyOn(log, 'info');
beforeEach(() => {
  vi.restoreAllMocks();
  info = vi.spyOn(log, 'info').mockReturnValue();
});

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;
const ok: Handler = async (request, response) => void response.end(`${request.url} `);

/**
 * Starts a server. The returned `open` opens a connection, sends `sent` and collects the received bytes. The returned `drain`
 * shuts the server down.
 */
async function startServer(handle: Handler = ok) {
  const handler = vi.fn(handle);
  const { server, drain } = httpServer(handler);
  const port = await listen(server);
  const clients: Socket[] = [];
  onTestFinished(async () => {
    for (const client of clients) client.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const open = (sent = '') => {
    const client = connect(port, '127.0.0.1');
    clients.push(client);
    client.on('error', () => undefined);
    let received = '';
    client.setEncoding('utf8').on('data', (chunk) => {
      received += chunk;
    });
    client.write(sent);
    const closed = once(client, 'close');
    return { client, received: () => received, closed: () => closed.then(() => received) };
  };
  return { server, drain, handler, open };
}

/** Returns a request without a body. `path` may start with a method and a space. Otherwise the method is GET. */
const requestTo = (path: string, ...headers: string[]) =>
  `${path.includes(' ') ? path : `GET ${path}`} HTTP/1.1\r\n${['Host: localhost', ...headers].join('\r\n')}\r\n\r\n`;
const CLOSE = 'Connection: close';
/** Returns the statuses of the responses. */
const statusesOf = (received: string) =>
  [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));

test('drain() waits for an API request whose client has disconnected', async () => {
  const events: string[] = [];
  let complete = () => {};
  const { server, drain } = httpServer(async (request) => {
    request.once('close', () => events.push('disconnected'));
    await new Promise<void>((resolve) => {
      complete = resolve;
    });
    events.push('completed');
  });
  const client = connect(await listen(server), '127.0.0.1');
  client.write('GET /users/v1/me HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(server, 'request');
  client.destroy();
  const closed = once(server, 'close');
  const drained = drain().then(() => events.push('drained'));
  await closed;
  await new Promise(setImmediate);
  complete();
  await drained;
  expect(events).toEqual(['disconnected', 'completed', 'drained']);
});

test('The first check of an idle connection leaves the connection open, so that Node.js can read a request that has already arrived. A later check closes the connection', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'performance'] });
  try {
    const { server } = httpServer(() => Promise.resolve());
    const check = async () => {
      vi.advanceTimersByTime(1_000);
      // The check runs in the next iteration of the event loop.
      await new Promise(setImmediate);
    };
    const accepted = once(server, 'connection');
    const client = connect(await listen(server), '127.0.0.1');
    const [socket] = await accepted;
    const now = vi.spyOn(performance, 'now').mockReturnValue(60_000);
    await check();
    expect(socket.destroyed).toBe(false);
    now.mockReturnValue(120_000);
    await check();
    expect(socket.destroyed).toBe(true);
    client.destroy();
    server.close();
  } finally {
    vi.useRealTimers();
    vi.restoreAllMocks();
  }
});

describe('Connections', () => {
  test('The server handles pipelined requests one after the other, in their order', async () => {
    const ends: (() => void)[] = [];
    const { handler, open } = await startServer(async (request, response) => {
      ends.push(() => response.end(`<${request.url}>`));
    });
    const { closed } = open(requestTo('/users/a') + requestTo('/users/b') + requestTo('/users/c', CLOSE));
    for (let count = 1; count <= 3; count += 1) {
      await expect.poll(() => ends.length).toBe(count);
      await new Promise(setImmediate);
      expect(handler).toHaveBeenCalledTimes(count);
      ends.at(-1)?.();
    }
    expect((await closed()).match(/<.*?>/g)).toEqual(['</users/a>', '</users/b>', '</users/c>']);
  });

  test('A connection with more than 32 waiting requests is closed', async () => {
    const { handler, open } = await startServer(() => new Promise(() => undefined));
    const accepted = open(requestTo('/users/a').repeat(33));
    await expect.poll(() => handler.mock.calls.length).toBe(1);
    await pause(50);
    expect(accepted.client.destroyed).toBe(false);
    accepted.client.write(requestTo('/users/a'));
    expect(await accepted.closed()).toBe('');
  });

  test('The headers and the first bytes of a response arrive in one packet', async () => {
    const { open } = await startServer(async (_request, response) => {
      response.flushHeaders();
      response.write('first');
      await pause(20);
      response.end();
    });
    const { client } = open(requestTo('/users/a'));
    const [packet] = await once(client, 'data');
    expect(packet).toContain('first');
  });

  test('flushHeaders() sends the headers even if no byte of the body follows', async () => {
    const { open } = await startServer(async (_request, response) => {
      response.flushHeaders();
    });
    const { received } = open(requestTo('/users/a'));
    await expect.poll(received).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n$/);
  });

  test('flushHeaders() does not throw after the response is closed', async () => {
    const flushed = vi.fn();
    const { open } = await startServer(async (_request, response) => {
      response.end();
      await once(response, 'close');
      response.flushHeaders();
      flushed();
    });
    open(requestTo('/users/a'));
    await expect.poll(() => flushed.mock.calls.length).toBe(1);
  });

  test('If a client disconnects, its waiting requests are not handled', async () => {
    const { handler, open } = await startServer(() => new Promise(() => undefined));
    const { client } = open(requestTo('/users/a') + requestTo('/users/b'));
    await expect.poll(() => handler.mock.calls.length).toBe(1);
    const [, response] = handler.mock.calls[0] ?? [];
    client.resetAndDestroy();
    await expect.poll(() => response?.closed).toBe(true);
    expect(handler).toHaveBeenCalledTimes(1);
  });

  test('A client that resets an idle connection causes no line in the log', async () => {
    const { server, open } = await startServer();
    const accepted = once(server, 'connection');
    const { client, received } = open(requestTo('/users/a'));
    const [socket] = await accepted;
    await expect.poll(received).toContain('/users/a');
    client.resetAndDestroy();
    await expect.poll(() => socket.destroyed).toBe(true);
    expect(info).not.toHaveBeenCalled();
  });

  test('If a response ends immediately after its first bytes, the client receives the chunks of the response in order', async () => {
    const { open } = await startServer(async (_request, response) => {
      response.flushHeaders();
      response.write('hello');
      response.end();
    });
    const received = await open(requestTo('/users/a', CLOSE)).closed();
    expect(received.split('\r\n\r\n').slice(1)).toEqual(['5\r\nhello\r\n0', '']);
  });

  test('A request to a path that is not served gets a 404 in JSON and is logged, and the handler is not called', async () => {
    const { handler, open } = await startServer();
    const received = await open(requestTo('/users/a.rsc', CLOSE, 'X-Request-Id: req-1')).closed();
    expect(received).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
    expect(received).toMatch(
      /\r\ncontent-type: application\/json\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\nx-request-id: req-1\r\n/,
    );
    expect(received).toMatch(/\r\n\r\n(?:[0-9a-f]+\r\n)?\{"message":"Not found"\}/);
    expect(handler).not.toHaveBeenCalled();
    expect(info).toHaveBeenCalledExactlyOnceWith(
      { requestId: 'req-1', route: 'GET /users', status: 404, ms: expect.any(Number) },
      'request',
    );
  });

  test('A rejected HEAD request gets no body', async () => {
    const { open } = await startServer();
    const received = await open(requestTo('HEAD /users/a.rsc?b', CLOSE)).closed();
    expect(statusesOf(received)).toEqual([404]);
    expect(received).not.toContain('message');
  });

  test('The logged duration of a rejected request starts when its headers arrive', async () => {
    const { open } = await startServer();
    const now = vi
      .spyOn(performance, 'now')
      .mockReturnValueOnce(1)
      .mockReturnValueOnce(1_000.3)
      .mockReturnValue(1_042.4);
    await open(requestTo('/users/a.rsc', CLOSE)).closed();
    now.mockRestore();
    expect(info.mock.calls[0]?.[0]).toMatchObject({ ms: 42 });
  });

  test.each([
    ['Expect: something', 417],
    ['Expect: 100-continue', 200],
  ])('A request with the header "%s" gets the status %i', async (header, status) => {
    const { open } = await startServer();
    const received = await open(requestTo('/users/a', header, CLOSE)).closed();
    expect(statusesOf(received).at(-1)).toBe(status);
    expect(received.includes('{"message":"Expectation failed"}')).toBe(status === 417);
  });
});

describe('Failing handlers', () => {
  test('A request whose handler fails before the response gets a 500 in JSON, and the connection stays open', async () => {
    const { open } = await startServer(async (request, response) => {
      if (request.url === '/users/a') throw new Error('failed by a test');
      response.end();
    });
    const received = await open(requestTo('/users/a') + requestTo('/users/b', CLOSE)).closed();
    expect(statusesOf(received)).toEqual([500, 200]);
    expect(received).toContain('{"message":"Internal Server Error"}');
  });

  test('If a handler fails after the response has started, the server closes the connection, so that the client sees an error', async () => {
    const { open } = await startServer(async (_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half');
      throw new Error('failed by a test');
    });
    expect(statusesOf(await open(requestTo('/users/a')).closed())).toEqual([200]);
  });
});

describe('Request bodies', () => {
  const chunked = (count: number, size: number) =>
    `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`.repeat(count);
  const POST = requestTo('POST /users/a', 'Transfer-Encoding: chunked', CLOSE);
  const reading: Handler = async (request, response) =>
    void response.end(String((await text(request)).length));

  test.each([
    [1_024, 1],
    [3_000, 64],
  ])('A body of %i chunks of %i bytes is read', async (count, size) => {
    const { open } = await startServer(reading);
    const received = await open(`${POST}${chunked(count, size)}0\r\n\r\n`).closed();
    expect(statusesOf(received)).toEqual([200]);
    expect(received).toContain(String(count * size));
  });

  test('A request whose body has too many small chunks gets a 400, and the connection is closed', async () => {
    const { open } = await startServer(reading);
    const received = await open(`${POST}${chunked(1_100, 1)}`).closed();
    expect(statusesOf(received)).toEqual([400]);
    expect(received).toContain('{"message":"Bad request"}');
    expect(received).toMatch(/\r\nconnection: close\r\n/);
  });

  test('A body may have 1,024 chunks and one more for every 64 bytes', async () => {
    const { open } = await startServer(reading);
    // 1,041 chunks with 1,088 bytes in total. 1,088 bytes are 17 times 64, so 1,024 + 17 chunks are allowed.
    const body = `${chunked(1_040, 1)}${chunked(1, 48)}`;
    expect(statusesOf(await open(`${POST}${body}0\r\n\r\n`).closed())).toEqual([200]);
    expect(statusesOf(await open(`${POST}${body}${chunked(1, 1)}0\r\n\r\n`).closed())).toEqual([400]);
  });

  test('If a body has too many small chunks, the handler receives neither the rest nor the end of the body. The handler therefore cannot mistake the incomplete body for a complete one', async () => {
    const read = vi.fn();
    const { open } = await startServer(async (request) => {
      await text(request).then(read, () => undefined);
    });
    await open(`${POST}${chunked(1_100, 1)}${chunked(1, 10_000)}0\r\n\r\n`).closed();
    await new Promise(setImmediate);
    expect(read).not.toHaveBeenCalled();
  });

  test('The body of a rejected request causes no error if the body arrives with the headers', async () => {
    const { server, open } = await startServer();
    const failed = vi.fn();
    server.on('request', (request) => request.on('error', failed));
    await open(`${requestTo('POST /users/a.rsc', 'Content-Length: 5')}hello`).closed();
    expect(failed).not.toHaveBeenCalled();
  });

  test('The HTTP server writes no log line for a client that gets its response and disconnects without sending the request body', async () => {
    const { open } = await startServer();
    const { client, received } = open(requestTo('POST /users/a', 'Content-Length: 500'));
    await expect.poll(received).toContain('/users/a');
    client.destroy();
    expect(info).not.toHaveBeenCalled();
  });

  test.each([
    requestTo('/users/a', 'Content-Length: 5'),
    requestTo('/users/a', 'Transfer-Encoding: chunked'),
    requestTo('POST /health/alive', 'Content-Length: 5'),
  ])(
    'The server ignores a body if the route or the method takes no body, and closes the connection after the response: %j',
    async (head) => {
      const { open } = await startServer(reading);
      const received = await open(head).closed();
      expect(statusesOf(received)).toEqual([200]);
      expect(received).toMatch(/connection: close/i);
      expect(received).toMatch(/\r\n\r\n(?:1\r\n)?0/);
    },
  );

  test('The connection stays open after a request without a body', async () => {
    const { open } = await startServer();
    const requests = [
      requestTo('/users/a'),
      requestTo('/users/a', 'Content-Length: 0'),
      requestTo('/users/a', CLOSE),
    ];
    expect(statusesOf(await open(requests.join('')).closed())).toEqual([200, 200, 200]);
    expect(info).not.toHaveBeenCalled();
  });

  test('A rejected request with a body gets a response before its body arrives, and the connection is closed', async () => {
    const { open } = await startServer();
    const received = await open(requestTo('POST /users/a.rsc', 'Content-Length: 500')).closed();
    expect(statusesOf(received)).toEqual([404]);
    expect(received).toMatch(/\r\nconnection: close\r\n/i);
  });

  test.each(['destroy', 'resetAndDestroy'] as const)(
    'If a client disconnects before its request is complete, the request is logged once, with status 400: %s()',
    async (disconnect) => {
      const { server, handler, open } = await startServer(async (request) => {
        await text(request).catch(() => undefined);
      });
      const accepted = once(server, 'connection');
      const { client } = open(requestTo('POST /users/a', 'Content-Length: 500'));
      const [socket] = await accepted;
      await expect.poll(() => handler.mock.calls.length).toBe(1);
      client[disconnect]();
      await expect.poll(() => socket.closed).toBe(true);
      await new Promise(setImmediate);
      expect(info.mock.calls).toEqual([
        [expect.objectContaining({ route: 'POST /users', status: 400 }), 'request'],
      ]);
    },
  );

  test('The HTTP server writes no log line for a client that sends a complete request and disconnects before the response', async () => {
    const { server, handler, open } = await startServer(() => new Promise(() => undefined));
    const { client } = open(requestTo('/users/a'));
    await expect.poll(() => handler.mock.calls.length).toBe(1);
    const [, response] = handler.mock.calls[0] ?? [];
    client.destroy();
    await once(response ?? server, 'close');
    expect(info).not.toHaveBeenCalled();
  });
});

describe('Invalid requests', () => {
  test('A request without a Host header gets a 400 in JSON', async () => {
    const { open } = await startServer();
    const received = await open('GET /users/a HTTP/1.1\r\nConnection: close\r\n\r\n').closed();
    expect(statusesOf(received)).toEqual([400]);
    expect(received).toContain('{"message":"Bad request"}');
  });

  test('Bytes that are not a request get a 400 in JSON, and the connection is closed', async () => {
    const { open } = await startServer();
    const received = await open('hello\r\n\r\n').closed();
    expect(received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(received).toContain('content-length: 25\r\nconnection: close\r\n\r\n{"message":"Bad request"}');
    expect(info).toHaveBeenCalledExactlyOnceWith(
      { requestId: expect.any(String), route: 'none', status: 400, ms: 0 },
      'request',
    );
  });

  test('Headers that are too long get a 431', async () => {
    const { open } = await startServer();
    const received = await open(requestTo('/users/a', `X: ${'x'.repeat(20_000)}`)).closed();
    expect(received).toMatch(/^HTTP\/1\.1 431 /);
    expect(received).toContain('{"message":"Request header fields too large"}');
  });

  test.each([
    ['ERR_HTTP_REQUEST_TIMEOUT', 408, 'Request timeout'],
    ['HPE_HEADER_OVERFLOW', 431, 'Request header fields too large'],
    ['HPE_INVALID_METHOD', 400, 'Bad request'],
    [undefined, 400, 'Bad request'],
  ])('A connection error with the code %s leads to a rejection with status %i', (code, status, message) => {
    expect(rejectionOfError(code === undefined ? {} : { code })).toEqual({ status, message });
  });

  test('If invalid bytes follow two requests, the server completes the response in flight, drops the waiting request and closes the connection', async () => {
    let end = () => {};
    const { handler, open } = await startServer(async (_request, response) => {
      end = () => response.end('complete');
    });
    const { client, closed } = open(requestTo('/users/a') + requestTo('/users/b'));
    await expect.poll(() => handler.mock.calls.length).toBe(1);
    client.write('hello\r\n\r\n');
    await pause(50);
    end();
    const received = await closed();
    expect(statusesOf(received)).toEqual([200]);
    expect(received).toMatch(/\r\nconnection: close\r\n/i);
    expect(received).toContain('complete');
    expect(handler).toHaveBeenCalledTimes(1);
  });

  test('If invalid bytes follow a request whose response has started, the server completes the response and closes the connection', async () => {
    let end = () => {};
    const { server, open } = await startServer(async (_request, response) => {
      response.write('started');
      end = () => response.end('complete');
    });
    const { client, received } = open(requestTo('/users/a'));
    await expect.poll(received).toContain('started');
    const failed = once(server, 'clientError');
    client.write('hello\r\n\r\n');
    await failed;
    end();
    await expect.poll(() => client.destroyed).toBe(true);
    expect(received()).toContain('complete');
  });

  test('If a response has started, invalid bytes in the body of its request close the connection', async () => {
    const { open } = await startServer(async (_request, response) => {
      response.writeHead(200);
      response.write('started');
    });
    const { client, received, closed } = open(requestTo('POST /users/a', 'Transfer-Encoding: chunked'));
    await expect.poll(received).toContain('started');
    client.write('no length\r\n');
    expect(statusesOf(await closed())).toEqual([200]);
  });

  test('If a body contains invalid bytes and the response has not started, the request gets a 400, and the log contains the route', async () => {
    const { handler, open } = await startServer(async (request) => {
      await text(request).catch(() => undefined);
    });
    const { client, closed } = open(requestTo('POST /users/a', 'Transfer-Encoding: chunked'));
    await expect.poll(() => handler.mock.calls.length).toBe(1);
    client.write('no length\r\n');
    expect(statusesOf(await closed())).toEqual([400]);
    expect(info.mock.calls).toEqual([
      [expect.objectContaining({ route: 'POST /users', status: 400 }), 'request'],
    ]);
  });

  test('A CONNECT request gets a 405 and does not open a tunnel', async () => {
    const { open } = await startServer();
    const received = await open(requestTo('CONNECT example.com:443')).closed();
    expect(received).toMatch(/^HTTP\/1\.1 405 Method Not Allowed\r\n/);
  });

  test('An error of the connection after a CONNECT request closes the connection', async () => {
    const { server, open } = await startServer();
    const connected = once(server, 'connect');
    open(requestTo('CONNECT example.com:443'));
    const [, socket] = await connected;
    socket.emit('error', new Error('failed by a test'));
    expect(socket.destroyed).toBe(true);
  });

  test('A CONNECT request on a connection with a request in flight closes the connection', async () => {
    const { handler, open } = await startServer(() => new Promise(() => undefined));
    const { client, closed } = open(requestTo('/users/a'));
    await expect.poll(() => handler.mock.calls.length).toBe(1);
    client.write(requestTo('CONNECT example.com:443'));
    expect(await closed()).toBe('');
  });
});

describe('Slow clients', () => {
  /** Replaces the clock. Returns a function that sets the time in seconds and runs the server's check of its connections. */
  function controlClock() {
    vi.useFakeTimers({ toFake: ['setInterval'] });
    const now = vi.spyOn(performance, 'now').mockReturnValue(1_000);
    onTestFinished(() => {
      now.mockRestore();
      vi.useRealTimers();
    });
    return async (seconds: number) => {
      now.mockReturnValue(1_000 + seconds * 1_000);
      vi.advanceTimersByTime(1_000);
      await new Promise(setImmediate);
      await new Promise(setImmediate);
    };
  }

  test('A client is disconnected if it does not read from a response for more than 10 s', async () => {
    const check = controlClock();
    const { server, open } = await startServer(async (_request, response) => {
      response.write('x'.repeat(50_000_000));
    });
    const accepted = once(server, 'connection');
    const { client } = open();
    const [socket] = await accepted;
    client.pause();
    client.write(requestTo('/users/a'));
    await expect.poll(() => socket.writableLength).toBeGreaterThan(0);
    await pause(100);
    await check(10);
    expect(socket.destroyed).toBe(false);
    await check(10.1);
    expect(socket.destroyed).toBe(true);
  });

  test('A client that reads some part of a response every 10 s is not disconnected', async () => {
    const check = controlClock();
    const { server, open } = await startServer(async (_request, response) => {
      while (!response.destroyed)
        if (!response.write('x'.repeat(1_000_000))) await once(response, 'drain').catch(() => undefined);
    });
    const accepted = once(server, 'connection');
    const { client, received } = open(requestTo('/users/a'));
    const [socket] = await accepted;
    for (let step = 1; step <= 3; step += 1) {
      client.resume();
      const wanted = received().length + 20_000_000;
      await expect.poll(() => received().length).toBeGreaterThan(wanted);
      client.pause();
      await check(9 * step);
    }
    expect(socket.destroyed).toBe(false);
  });

  test('A client that waits for a response is not disconnected', async () => {
    const check = controlClock();
    const { server, handler, open } = await startServer(() => new Promise(() => undefined));
    const accepted = once(server, 'connection');
    open(requestTo('/users/a'));
    const [socket] = await accepted;
    await expect.poll(() => handler.mock.calls.length).toBe(1);
    for (const second of [9, 18, 27, 36]) await check(second);
    expect(socket.destroyed).toBe(false);
  });

  test('If the keep-alive timer of Node.js fires before the server has read the next request, the request gets its response', async () => {
    const { server, open } = await startServer();
    const accepted = once(server, 'connection');
    const { client, received } = open(requestTo('/users/a'));
    const [socket] = await accepted;
    await expect.poll(() => statusesOf(received())).toEqual([200]);
    socket.emit('timeout');
    client.write(requestTo('/users/b'));
    await expect.poll(() => statusesOf(received())).toEqual([200, 200]);
  });

  test('A connection without a request is closed 15 s after the first check that finds the connection idle', async () => {
    const check = controlClock();
    const { server, open } = await startServer();
    const accepted = once(server, 'connection');
    open();
    const [socket] = await accepted;
    await check(1);
    await check(16);
    expect(socket.destroyed).toBe(false);
    await check(16.1);
    expect(socket.destroyed).toBe(true);
  });
});

describe('drain()', () => {
  test('During drain(), the last response of a connection has the header `Connection: close`', async () => {
    let end = () => {};
    const { handler, drain, open } = await startServer(async (_request, response) => {
      end = () => response.end('last');
    });
    const { closed } = open(requestTo('/users/a'));
    await expect.poll(() => handler.mock.calls.length).toBe(1);
    const drained = drain();
    end();
    const received = await closed();
    expect(received).toMatch(/\r\nConnection: close\r\n/i);
    expect(received).toContain('last');
    await drained;
  });

  test('During drain(), pipelined requests get responses before their connection closes', async () => {
    const ends: (() => void)[] = [];
    const { drain, open } = await startServer(async (request, response) => {
      ends.push(() => response.end(`<${request.url}>`));
    });
    const { closed } = open(['/users/a', '/users/b', '/users/c'].map((path) => requestTo(path)).join(''));
    await expect.poll(() => ends.length).toBe(1);
    await pause(20);
    const drained = drain();
    for (let count = 1; count <= 3; count += 1) {
      await expect.poll(() => ends.length).toBe(count);
      ends[count - 1]?.();
    }
    const received = await closed();
    expect(received.match(/<.*?>/g)).toEqual(['</users/a>', '</users/b>', '</users/c>']);
    expect(received.match(/Connection: (?:close|keep-alive)/gi)).toEqual([
      'Connection: keep-alive',
      'Connection: keep-alive',
      'Connection: close',
    ]);
    await drained;
  });

  test('During drain(), the server responds to a new request on an idle connection and then closes the connection', async () => {
    const { drain, open } = await startServer();
    const { client, received, closed } = open(requestTo('/users/a'));
    await expect.poll(received).toContain('/users/a');
    const drained = drain();
    client.write(requestTo('/users/b'));
    expect(await closed()).toMatch(/Connection: close[\s\S]*\/users\/b/i);
    await drained;
  });

  test('drain() does not wait for a page request whose client has disconnected', async () => {
    // If a client aborts a download, the handler of Next.js returns a promise that never settles.
    const { handler, drain, open } = await startServer(() => new Promise(() => undefined));
    const { client } = open(requestTo('/'));
    await expect.poll(() => handler.mock.calls.length).toBe(1);
    client.destroy();
    const drained = vi.fn();
    void drain().then(drained);
    await expect.poll(() => drained.mock.calls.length).toBe(1);
  });

  test('drain() closes idle connections and stops listening', async () => {
    const { server, drain, open } = await startServer();
    const { received, closed } = open(requestTo('/users/a'));
    await expect.poll(received).toContain('/users/a');
    await drain();
    await closed();
    expect(server.listening).toBe(false);
  });
});

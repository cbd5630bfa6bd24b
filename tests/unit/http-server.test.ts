import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test, vi } from 'vitest';
import { httpServer } from '#lib/server/http-server';
import { listen } from '../../dev/system/listen';

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

test('An idle connection is closed at the second check, because the first one may run before its request is read', async () => {
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

test('The chunks of a response that ends immediately after its first bytes arrive in order', async () => {
  const { server } = httpServer(async (_request, response) => {
    response.flushHeaders();
    response.write('hello');
    response.end();
  });
  const client = connect(await listen(server), '127.0.0.1');
  client.end('GET /users/v1/me HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  const received = Buffer.concat(await client.toArray()).toString();
  expect(received.split('\r\n\r\n').slice(1)).toEqual(['5\r\nhello\r\n0', '']);
  server.close();
});

import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import { standInFront } from '#lib/gate';
import { log } from '#lib/log';

test('Unexpected messages on the net.server.socket channel do not cause an uncaught exception', async () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  process.on('uncaughtException', note);
  standInFront();
  for (const message of [undefined, null, {}, { socket: null }, { socket: { server: {} } }, 'x']) {
    channel('net.server.socket').publish(message);
  }
  // Node.js rethrows the error of a subscriber in the next tick.
  await new Promise(setImmediate);
  process.off('uncaughtException', note);
  expect(uncaught).toEqual([]);
});

test('An error in a pipelined request does not interrupt the response to the request before it', async () => {
  vi.spyOn(log, 'info').mockReturnValue();
  standInFront();
  const sockets: Socket[] = [];
  const responses: ServerResponse[] = [];
  const server = createServer((_request, response) => {
    responses.push(response);
    response.writeHead(200).write('started, ');
  });
  server.on('connection', (socket: Socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const client = connect(typeof address === 'object' ? (address?.port ?? 0) : 0, '127.0.0.1');
  let received = '';
  client.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  client.write(
    'GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST /auth/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{',
  );
  await expect.poll(() => received).toContain('started');
  expect(responses, 'the second request waits').toHaveLength(1);
  const ended = once(client, 'close');
  // Node.js emits this error when the second request is not complete in time.
  const error = Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
  server.emit('clientError', error, sockets[0]);
  responses[0]?.end('and complete');
  await ended;
  expect(received).toContain('and complete');
  expect(received.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  server.close();
});

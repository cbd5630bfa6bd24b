import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { limitSilence } from '#lib/http/silence';
import { listen } from '../../dev/system/listen';
import { stopAfterAll } from '../vitest/stop-after-all';

const responses = new Set<ServerResponse>();
let handle: (response: ServerResponse) => void = () => undefined;
const server = createServer((_request, response) => {
  responses.add(response.once('close', () => responses.delete(response)));
  handle(response);
});
limitSilence(server, 50, responses);
const port = await listen(server);
stopAfterAll({ stop: () => server.close() });

function send(request: string) {
  const socket = connect(port, 'localhost');
  socket.write(request);
  return socket;
}
const GET = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

test('A handler that works for longer than the limit on silence completes its response', async () => {
  handle = (response) => void server.once('timeout', () => response.end('done'));
  let received = '';
  for await (const chunk of send(GET).setEncoding('utf8')) received += chunk;
  expect(received).toContain('done');
});

test('A connection that was idle for longer than the limit on silence serves the next request', async () => {
  handle = (response) => void response.end('done');
  const socket = send('GET / HTTP/1.1\r\nHost: x\r\n\r\n').setEncoding('utf8');
  expect(String(await once(socket, 'data'))).toContain('done');
  await pause(200);
  socket.write(GET);
  expect(String(await once(socket, 'data'))).toContain('done');
});

test.each([
  ['does not send', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf', () => undefined],
  ['does not read', GET, (response: ServerResponse) => void response.end(Buffer.alloc(64 * 1024 * 1024))],
])('A connection whose client %s is closed', async (_what, request, handler) => {
  handle = handler;
  const socket = send(request).pause();
  const [serverSide] = await once(server, 'timeout');
  await expect.poll(() => serverSide.destroyed).toBe(true);
  socket.destroy();
});

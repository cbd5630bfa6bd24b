import { AsyncLocalStorage } from 'node:async_hooks';
import http from 'node:http';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { Readable } from 'node:stream';

/*
 * Runs one built function as Vercel's launcher does. The handler of the function takes `(request, response)`. With the
 * argument `web`, the handler takes a `Request` instead. With the argument `hidden`, the function cannot find the HTTP server,
 * as if the server ran in another process. Vercel does not document in which process its HTTP server runs, so both cases are
 * tested. Sends the port and the number of pending `waitUntil` promises to the parent process.
 */
const [file = '', kind, visibility] = process.argv.slice(2);
const contexts = new AsyncLocalStorage();
let waiting = 0;

function changeWaiting(change) {
  waiting += change;
  process.send({ waiting });
}

function waitUntil(promise) {
  changeWaiting(1);
  Promise.resolve(promise)
    .catch(() => undefined)
    .finally(() => changeWaiting(-1));
}

// Vercel's own launcher provides `waitUntil` under this symbol.
globalThis[Symbol.for('@vercel/request-context')] = { get: () => contexts.getStore() };

async function handleWeb(handler, request, response) {
  const { method, headers } = request;
  const url = `${headers['x-forwarded-proto']}://${headers['x-forwarded-host']}${request.url}`;
  const flat = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
  const body = method === 'GET' || method === 'HEAD' ? undefined : Readable.toWeb(request);
  const result = await handler(new Request(url, { method, headers: flat, body, duplex: 'half' }));
  const cookies = result.headers.getSetCookie();
  const rest = [...result.headers].filter(([name]) => name !== 'set-cookie');
  response.writeHead(result.status, [...rest, ...cookies.map((cookie) => ['set-cookie', cookie])].flat());
  if (result.body) Readable.fromWeb(result.body).pipe(response);
  else response.end();
}

// Loads the handler before the first request, as part of the cold start.
const handler = createRequire(path.resolve(file))(path.resolve(file));

const server = http.createServer((request, response) =>
  contexts.run({ waitUntil, headers: request.headers, url: request.url }, async () => {
    try {
      await (kind === 'web' ? handleWeb(handler, request, response) : handler(request, response));
    } catch (error) {
      console.error(error);
      if (!response.headersSent) response.writeHead(500, { 'x-vercel-error': 'FUNCTION_INVOCATION_FAILED' });
      response.end();
    }
  }),
);
server.keepAliveTimeout = 0;
// With `hidden`, a `net.Server` accepts the connections. After its `connection` event, Node.js publishes the socket on the
// diagnostics channel `net.server.socket`. An HTTP server stores itself in `socket.server` when it gets a socket.
// `setImmediate` passes the socket to the HTTP server after the socket is published, so that a subscriber of the channel does
// not find the HTTP server in the socket.
const passSocket = (socket) => setImmediate(() => server.emit('connection', socket));
const listening = visibility === 'hidden' ? net.createServer(passSocket) : server;
listening.listen(0, '127.0.0.1', () => process.send({ port: listening.address().port }));

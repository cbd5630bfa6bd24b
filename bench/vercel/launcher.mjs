import { AsyncLocalStorage } from 'node:async_hooks';
import http from 'node:http';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { Readable } from 'node:stream';

/*
 * Runs one built function as the platform's launcher does: a handler of `(request, response)`, or with `web` one of a
 * `Request`. Whether the platform's own HTTP server is in the process of a function, nobody outside knows: with `apart`
 * none is, as far as the function can tell. Tells its parent the port, and how much `waitUntil` was given is not done yet.
 */
const [file = '', kind, place] = process.argv.slice(2);
const contexts = new AsyncLocalStorage();
let waiting = 0;

function wait(change) {
  waiting += change;
  process.send({ waiting });
}

function waitUntil(promise) {
  wait(1);
  Promise.resolve(promise)
    .catch(() => undefined)
    .finally(() => wait(-1));
}

globalThis[Symbol.for('@vercel/request-context')] = { get: () => contexts.getStore() };

async function answerWeb(handler, request, response) {
  const { method, headers } = request;
  const url = `${headers['x-forwarded-proto']}://${headers['x-forwarded-host']}${request.url}`;
  const flat = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
  const body = method === 'GET' || method === 'HEAD' ? undefined : Readable.toWeb(request);
  const answer = await handler(new Request(url, { method, headers: flat, body, duplex: 'half' }));
  const cookies = answer.headers.getSetCookie();
  const rest = [...answer.headers].filter(([name]) => name !== 'set-cookie');
  response.writeHead(answer.status, [...rest, ...cookies.map((cookie) => ['set-cookie', cookie])].flat());
  if (answer.body) Readable.fromWeb(answer.body).pipe(response);
  else response.end();
}

// Loaded before anything is asked: what a function loads at its start is part of its cold start.
const handler = createRequire(path.resolve(file))(path.resolve(file));

const server = http.createServer((request, response) =>
  contexts.run({ waitUntil, headers: request.headers, url: request.url }, async () => {
    try {
      await (kind === 'web' ? answerWeb(handler, request, response) : handler(request, response));
    } catch (error) {
      console.error(error);
      if (!response.headersSent) response.writeHead(500, { 'x-vercel-error': 'FUNCTION_INVOCATION_FAILED' });
      response.end();
    }
  }),
);
server.keepAliveTimeout = 0;
// Handed over behind the event that tells of it, a connection is not known as one of an HTTP server.
const handOver = (socket) => setImmediate(() => server.emit('connection', socket));
const listening = place === 'apart' ? net.createServer(handOver) : server;
listening.listen(0, '127.0.0.1', () => process.send({ port: listening.address().port }));

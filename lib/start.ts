import './idp/credentials';
import { subscribe } from 'node:diagnostics_channel';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Server } from 'node:net';
import * as z from 'zod/mini';
import { environment, InvalidEnvironmentError } from './env';
import { requestsDone } from './http';

// Next.js logs an error thrown at start-up and serves on, so the process has to be ended here.
try {
  environment();
} catch (error) {
  process.stderr.write(`${error instanceof InvalidEnvironmentError ? error.message : 'Start-up failed'}\n`);
  process.exit(1);
}

/** How long a sender may take to send a request whole. */
const REQUEST_MS = 10_000;

const RequestStart = z.object({
  request: z.instanceof(IncomingMessage),
  response: z.instanceof(ServerResponse),
});

/** A path and perhaps a query: not `*`, no address of another host, no empty segment, over which Next.js redirects. */
const PLAIN_TARGET = /^(?:\/[^/?\\]+)*\/?(?:\?.*)?$/s;

/** A method that Next.js knows and no route has. */
const REFUSED_METHOD = 'PROPFIND';

// Before Next.js sees a request. It reads the body to its end before any code of a route runs, and Node bounds that in
// minutes only; over TRACE and the path `*` it fails with a 500.
subscribe('http.server.request.start', (message) => {
  const { request, response } = RequestStart.parse(message);
  if (request.method === 'TRACE' || !PLAIN_TARGET.test(request.url ?? '')) {
    request.method = REFUSED_METHOD;
    request.url = '/api-not-found';
  }
  const timer = setTimeout(() => {
    if (request.complete || response.headersSent) return;
    response.writeHead(408, {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      connection: 'close',
    });
    response.end('{"message":"Request timeout"}', () => request.destroy());
  }, REQUEST_MS);
  request.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
});

const Connection = z.object({ socket: z.object({ server: z.instanceof(Server) }) });

// Nothing but the development server of Next.js upgrades a connection, yet Next.js always listens for it and leaves a
// connection to an unknown path open for ever. Where nobody listens, Node answers the request as any other.
if (process.env.NODE_ENV === 'production') {
  subscribe('net.server.socket', (message) => {
    Connection.parse(message).socket.server.removeAllListeners('upgrade');
  });
}

/** Below what platforms grant before they kill. */
const SHUTDOWN_MS = 9_000;

// On SIGTERM Next.js stops listening, answers what is under way and exits with 143, as if killed.
process.once('SIGTERM', async () => {
  process.once('exit', () => {
    process.exitCode = 0;
  });
  setTimeout(() => process.exit(), SHUTDOWN_MS).unref();
  await requestsDone();
  if (globalThis.databaseConnection) await (await import('./db')).drainDatabase();
});

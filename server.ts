import { readFileSync } from 'node:fs';
import { createServer, IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import nextEnv from '@next/env';
import { beginShutdown, closeDependencies, isShuttingDown } from '#lib/base/shutdown';
import { MAX_BODY_BYTES, rejectedStatus } from '#lib/http/address';
import { type RejectionStatus, rejection } from '#lib/http/rejection';
import { limitSilence } from '#lib/http/silence';

/**
 * `npm start`: serves the production build. `-p` or PORT sets the port (default 3000), and `-H` the host name. On SIGTERM,
 * completes the requests in flight and exits with code 0 within 9 s. `next start` keeps its connections alive then, and does not
 * limit slow clients.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', short: 'p', default: process.env['PORT'] || '3000' },
    hostname: { type: 'string', short: 'H' },
  },
});
const port = Number(values.port);
if (!/^\d{1,5}$/.test(values.port) || port > 65_535) {
  process.stderr.write(`Invalid port: ${values.port}. Pass a number from 0 to 65535 with -p or PORT.\n`);
  process.exit(1);
}

/** Maximum time for a client to send a request. */
const REQUEST_MS = 10_000;
/** Maximum time without data on a connection, also while a client reads a response, but not while a handler works. */
const SILENCE_MS = 20_000;
/** Maximum duration of a shutdown. It is below 10 s, because platforms send SIGKILL after 10 s. */
const SHUTDOWN_MS = 9_000;
/** Time after SIGTERM in which the process still accepts connections. Each response closes its connection. */
const DRAIN_MS = 1_000;

const projectFolder = path.dirname(import.meta.dirname);
const buildFolder = path.resolve(process.env['NEXT_DIST_DIR'] ?? import.meta.dirname);

process.title = 'identity-link';
Object.assign(process.env, { NODE_ENV: 'production' });
nextEnv.loadEnvConfig(projectFolder);
// Next.js reads the configuration of the build from this variable, as in its standalone output. Otherwise, it would load a
// compiler at every start to read next.config.ts.
const { config } = JSON.parse(readFileSync(path.join(buildFolder, 'required-server-files.json'), 'utf8'));
const distDir = path.relative(projectFolder, buildFolder);
process.env['__NEXT_PRIVATE_STANDALONE_CONFIG'] = JSON.stringify({ ...config, distDir });
const { default: next } = await import('next');
// Next.js adds its upgrade listener to this unused server, so Node.js handles an upgrade request like any other request.
const app = next({
  dir: projectFolder,
  hostname: values.hostname ?? 'localhost',
  port,
  httpServer: createServer(),
});
await app.prepare();
const handle = app.getRequestHandler();

const responses = new Set<ServerResponse>();

/**
 * A request that emits `overflow` at the end of 1 MiB of its body. Node.js then reads no more of it. Next.js would copy a body
 * without a length, whatever its size, before the middleware can check the credential.
 */
class LimitedRequest extends IncomingMessage {
  private bytes = 0;

  override push(chunk: Buffer | null): boolean {
    this.bytes += chunk?.length ?? 0;
    if (this.bytes <= MAX_BODY_BYTES) return super.push(chunk);
    this.emit('overflow');
    return false;
  }
}

function listener(request: IncomingMessage, response: ServerResponse): void {
  responses.add(response.once('close', () => responses.delete(response)));
  if (isShuttingDown()) response.shouldKeepAlive = false;
  const { method = '', url = '' } = request;
  const [pathname = '', query = ''] = url.split(/\?(.*)/s, 2);
  const status = rejectedStatus({
    method,
    pathname,
    query,
    contentLength: request.headers['content-length'],
  });
  const reject = (status: RejectionStatus, error?: unknown) => {
    if (status === 413) response.shouldKeepAlive = false;
    const { headers, body } = rejection(status, request.headers['x-request-id'], error);
    if (response.headersSent) response.destroy();
    else response.writeHead(status, headers).end(body);
  };
  request.once('overflow', () => reject(413));
  if (status === undefined)
    handle(request, response).catch((error: unknown) => {
      // After an overflow, the response has ended.
      if (!response.writableEnded) reject(500, error);
    });
  else reject(status);
}

// instrumentation.ts has checked the variable. Its schema would need zod, which the image of the Dockerfile does not contain.
const keepAliveTimeout = Number(process.env['KEEP_ALIVE_SECONDS']?.trim() || 125) * 1_000;
const limits = { requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS, connectionsCheckingInterval: 1_000 };
const server = createServer({ IncomingMessage: LimitedRequest, ...limits, keepAliveTimeout }, listener);
limitSilence(server, SILENCE_MS, responses);

server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) => {
  if (!socket.writable || code === 'ECONNRESET') return void socket.destroy();
  const status = code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
  const { headers, body } = rejection(status);
  const lines = Object.entries({ ...headers, connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n'), () =>
    socket.destroy(),
  );
});

server.once('error', ({ code, message }: NodeJS.ErrnoException) => {
  const isInUse = code === 'EADDRINUSE';
  process.stderr.write(`${isInUse ? `Port ${port} is in use. Choose another port with -p.` : message}\n`);
  process.exit(1);
});
server.listen(port, values.hostname, () => {
  const address = server.address();
  const listening = typeof address === 'object' && address ? address.port : port;
  process.stdout.write(`Listening on http://${values.hostname ?? 'localhost'}:${listening}\n`);
});

process.on('SIGTERM', async () => {
  if (!beginShutdown()) return;
  setTimeout(() => process.exit(0), SHUTDOWN_MS).unref();
  for (const response of responses) response.shouldKeepAlive = false;
  // Accepts requests until load balancers and clients have learned of the shutdown.
  await pause(DRAIN_MS);
  server.close();
  // A request may have arrived that Node.js has not read yet.
  do await pause(50);
  while (responses.size > 0);
  server.closeAllConnections();
  await closeDependencies();
  process.exit(0);
});

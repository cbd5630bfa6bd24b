import { subscribe } from 'node:diagnostics_channel';
import { type IncomingMessage, Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { Server as NetServer, Socket } from 'node:net';
import { parseAndValidateFlightRouterState } from 'next/dist/server/app-render/parse-and-validate-flight-router-state';
import { requestIdOf } from './http';
import { log } from './log';
import { isApi, methodsAt } from './paths';

/** How long a sender may take to send a request whole. */
const REQUEST_MS = 10_000;
/** How often that is looked at; Node's own default is 30 s. */
const LOOK_EVERY_MS = 1_000;

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const NOT_FOUND: Refusal = { status: 404, message: 'Not found' };
const BAD_REQUEST: Refusal = { status: 400, message: 'Bad request' };
/** What Node says of a connection on which it found no request; anything else is a bad one. */
const NO_REQUEST: Readonly<Record<string, Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'Request timeout' },
  HPE_HEADER_OVERFLOW: { status: 431, message: 'Request header fields too large' },
};

/** What only the framework's own client and its own servers send, and no route of the API has a use for. */
const FRAMEWORK_HEADER = /^(?:rsc|next-.*|x-nextjs-.*|x-middleware-.*|x-action-.*)$/;

const isDevelopment = process.env.NODE_ENV === 'development';
/** What the browser asks the development server for, and this service serves in no other way. */
const DEVELOPMENT = /^\/(?:_next\/|__nextjs)/;

/** A page's request by the framework's client says what the browser shows already. */
function hasReadableState({ headers }: IncomingMessage): boolean {
  try {
    parseAndValidateFlightRouterState(headers['next-router-state-tree']);
    return true;
  } catch {
    return false;
  }
}

/**
 * Lets a request in only if it is one that this service serves: `undefined`. Whatever else the framework would make of it
 * is refused. Of an API request, what only the framework would read is dropped.
 */
function refusal(request: IncomingMessage): Refusal | undefined {
  const { method = '', url = '', headers } = request;
  const [pathname = ''] = url.split('?', 1);
  // `*`, or an address of another host.
  if (!url.startsWith('/')) return BAD_REQUEST;
  if (isDevelopment && DEVELOPMENT.test(pathname)) return undefined;
  const methods = methodsAt(pathname);
  if (methods.length === 0) return NOT_FOUND;
  if (!methods.includes(method)) {
    return { status: 405, message: 'Method not allowed', headers: { allow: methods.join(', ') } };
  }
  if (isApi(pathname)) {
    for (const name of Object.keys(headers)) if (FRAMEWORK_HEADER.test(name)) delete headers[name];
  } else if (!hasReadableState(request)) return BAD_REQUEST;
  return undefined;
}

/** A request that has come, as far as its headers. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly started: number;
}

/** One line for a request that no route has answered: of its path, only whose it was. */
function logRequest(status: number, { request, started }: Partial<Exchange>): string {
  const requestId = requestIdOf(request?.headers['x-request-id']);
  const [, root = ''] = /^(\/\w+)/.exec(request?.url ?? '') ?? [];
  const route = request ? `${request.method} ${isApi(root) ? root : '/'}` : 'none';
  const ms = started === undefined ? 0 : Math.round(performance.now() - started);
  log.info({ requestId, route, status, ms }, 'request');
  return requestId;
}

const bodyOf = ({ message }: Refusal) => JSON.stringify({ message });
const headersOf = ({ headers }: Refusal, requestId: string) => ({
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-request-id': requestId,
  ...headers,
});

function refuse(exchange: Exchange, refused: Refusal): void {
  const { request, response } = exchange;
  response.writeHead(refused.status, headersOf(refused, logRequest(refused.status, exchange)));
  response.end(request.method === 'HEAD' ? undefined : bodyOf(refused));
}

/** What there was no whole request for is answered on the bare connection, which then ends. */
function hangUp(socket: Socket, refused: Refusal, exchange: Partial<Exchange>): void {
  const body = bodyOf(refused);
  const lines = Object.entries({
    ...headersOf(refused, logRequest(refused.status, exchange)),
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${refused.status} ${STATUS_CODES[refused.status]}\r\n${lines.join('')}\r\n${body}`);
  socket.destroySoon();
}

const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

/** Each connection's latest exchange. */
const latest = new WeakMap<object, Exchange>();
const hungUp = new WeakSet<object>();

/** Tells of an upload that broke off: no route has seen it, so none has logged it. */
function logBrokenUpload(exchange: Exchange): void {
  const { request, response } = exchange;
  response.once('close', () => {
    if (!request.complete && !response.headersSent && !hungUp.has(request.socket)) logRequest(400, exchange);
  });
}

/** Responses under way, to end their connections with them once the process is asked to leave. */
const underWay = new Set<ServerResponse>();

/** Node found no request on a connection, or not in time: says so once, unless an answer is on its way. */
function onClientError(error: Error & { code?: string }, socket: unknown): void {
  if (!(socket instanceof Socket)) return;
  const exchange = latest.get(socket);
  const isIncomplete = exchange?.request.complete === false;
  const isAnswered =
    (isIncomplete && exchange.response.headersSent) ||
    [...underWay].some((response) => response.socket === socket && response.headersSent);
  if (!socket.writable || isAnswered || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  hungUp.add(socket);
  hangUp(socket, NO_REQUEST[error.code ?? ''] ?? BAD_REQUEST, isIncomplete ? exchange : {});
}

/** Connections, each until it ends. */
const connections = new Set<Socket>();
const servers = new Set<Server>();
let isLeaving = false;

function stand(server: Server): void {
  const [next] = server.listeners('request');
  if (!next) return;
  servers.add(server);
  server.removeAllListeners('request').on('request', (request: IncomingMessage, response: ServerResponse) => {
    const exchange = { request, response, started: performance.now() };
    latest.set(request.socket, exchange);
    underWay.add(response);
    response.once('close', () => underWay.delete(response));
    if (isLeaving) response.shouldKeepAlive = false;
    const refused = refusal(request);
    if (refused) {
      refuse(exchange, refused);
      return;
    }
    if (hasBody(request)) logBrokenUpload(exchange);
    next.call(server, request, response);
  });
  server.on('clientError', onClientError);
  server.headersTimeout = REQUEST_MS;
  server.requestTimeout = REQUEST_MS;
  // Node reads how often to look when it begins to listen: this makes it begin anew.
  Object.assign(server, { connectionsCheckingInterval: LOOK_EVERY_MS });
  server
    .listeners('listening')
    .find(({ name }) => name === 'setupConnectionsTracking')
    ?.call(server);
  // Nothing but the development server of Next.js upgrades a connection, yet Next.js always listens for it and leaves a
  // connection to an unknown path open for ever. Where nobody listens, Node answers the request as any other.
  if (!isDevelopment) server.removeAllListeners('upgrade');
}

/**
 * Stands in front of Next.js on every server of this process: only what this service serves is let in, a request that is
 * not complete after 10 s is a 408 and the end of its connection, answered or not, and one that breaks off has its line
 * in the log. It begins with the first connection.
 */
export function standInFront(): void {
  subscribe('net.server.socket', (message) => {
    const socket = typeof message === 'object' && message !== null && 'socket' in message && message.socket;
    const server = socket instanceof Socket && 'server' in socket && socket.server;
    if (!(server instanceof Server && socket instanceof Socket)) return;
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    if (!servers.has(server)) stand(server);
  });
}

/** How long a connection may be silent before it counts as idle: a client that is about to send is not cut off. */
const IDLE_MS = 1_000;

/** Ends connections on which nothing is asked, also those on which nothing ever was: browsers open some ahead. */
function endIdleConnections(): void {
  for (const server of servers) server.closeIdleConnections();
  for (const socket of connections) if (!latest.has(socket)) socket.destroy();
}

/** Takes no connection any more; resolves once those that there are have ended. */
function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // Of `net`, for that of `http` ends idle connections at once.
    NetServer.prototype.close.call(server, () => resolve());
    // Next.js closes it again, and prints that it is closed.
    server.close = (callback) => {
      callback?.();
      return server;
    };
  });
}

/**
 * Takes no connection any more, answers what still comes on those that there are, the last answer under way on each being
 * its end, and resolves once all are gone. A connection on which nothing is asked for a second is ended.
 */
export async function leave(): Promise<void> {
  isLeaving = true;
  for (const { response } of [...connections].flatMap((socket) => latest.get(socket) ?? [])) {
    if (!response.headersSent) response.shouldKeepAlive = false;
  }
  setInterval(endIdleConnections, IDLE_MS).unref();
  await Promise.all([...servers].map(close));
}

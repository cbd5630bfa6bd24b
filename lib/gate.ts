import { subscribe } from 'node:diagnostics_channel';
import { type IncomingMessage, Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { Server as NetServer, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { BAD_REQUEST, type Refusal, refusal } from './admission';
import { log, requestIdOf } from './log';
import { rootOf, takesBody } from './paths';

/** The development server keeps connections for its own news. */
const isDevelopment = process.env.NODE_ENV === 'development';
/** How long a sender may take to send a request whole, or to take what it is sent. */
const PATIENCE_MS = 10_000;
/** How often that is looked at; Node's own default is 30 s. */
const LOOK_EVERY_MS = 1_000;
/** A body may have so many chunks, and one more for each 64 bytes: Next.js copies each chunk by itself, whatever its size. */
const MAX_SMALL_CHUNKS = 1_024;
const MIN_CHUNK_BYTES = 64;
/** So many requests may wait on a connection for the answer to the one before. */
const MAX_WAITING = 32;

const EXPECTATION_FAILED: Refusal = { status: 417, message: 'Expectation failed' };
const NO_TUNNEL: Refusal = { status: 405, message: 'Method not allowed' };
/** What Node says of a connection on which it found no request; anything else is a bad one. */
const NO_REQUEST: Readonly<Record<string, Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'Request timeout' },
  HPE_HEADER_OVERFLOW: { status: 431, message: 'Request header fields too large' },
};

/** A request that has come, as far as its headers. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly started: number;
  /** Hands it on. */
  readonly next: () => void;
}

/** A connection, and what is under way on it: one exchange at a time. */
interface Connection {
  current: Exchange | undefined;
  /** The one that was begun last: under way, or answered and perhaps not complete. */
  last: Exchange | undefined;
  readonly waiting: Exchange[];
  /** When it last had nothing under way. */
  idleSince: number;
  /** How much of its answers the client has taken, and when that was last more, or all. */
  taken: number;
  takenAt: number;
  /** The end of it was said on the bare connection. */
  hungUp: boolean;
}

const connections = new Map<Socket, Connection>();
const servers = new Set<Server>();
let isLeaving = false;

function connectionOf(socket: Socket): Connection {
  const known = connections.get(socket);
  if (known) return known;
  const now = performance.now();
  const connection = {
    current: undefined,
    last: undefined,
    waiting: [],
    idleSince: now,
    taken: 0,
    takenAt: now,
    hungUp: false,
  };
  connections.set(socket, connection);
  socket.once('close', () => connections.delete(socket));
  return connection;
}

const pathnameOf = ({ url = '' }: IncomingMessage): string => url.split('?', 1)[0] ?? '';

/** One line for a request that no route has answered: of its path, only whose it was. */
function logRequest(status: number, { request, started }: Partial<Exchange>): string {
  const requestId = requestIdOf(request?.headers['x-request-id']);
  const route = request ? `${request.method} ${rootOf(pathnameOf(request))}` : 'none';
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

const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** Makes a response the last on its connection, so that the body of its request is not read. */
function discardBody({ request, response }: Exchange): void {
  response.shouldKeepAlive = false;
  // Otherwise the end of an incomplete request would end the connection before its response.
  request.complete = true;
  request.push(null);
  // The parser stops reading the socket when `push` returns false.
  request.push = () => false;
}

/** Ends a connection that sends a body in too many small chunks, with a 400 if the request has no response yet. */
function limitChunks(request: IncomingMessage): void {
  const push = request.push.bind(request);
  let chunksLeft = MAX_SMALL_CHUNKS;
  request.push = (chunk, encoding) => {
    if (chunk === null) return push(null);
    if (chunksLeft < 0) return false;
    chunksLeft += chunk.length / MIN_CHUNK_BYTES - 1;
    if (chunksLeft >= 0) return push(chunk, encoding);
    onClientError(new Error('Too many chunks'), request.socket);
    return false;
  };
}

function refuse(exchange: Exchange, refused: Refusal): void {
  const { request, response } = exchange;
  if (hasBody(request)) discardBody(exchange);
  response.writeHead(refused.status, headersOf(refused, logRequest(refused.status, exchange)));
  response.end(request.method === 'HEAD' ? undefined : bodyOf(refused));
}

/** What there was no whole request for is answered on the bare connection, which then ends. */
function hangUp(socket: Socket, refused: Refusal, exchange: Partial<Exchange> = {}): void {
  connectionOf(socket).hungUp = true;
  const body = bodyOf(refused);
  const lines = Object.entries({
    ...headersOf(refused, logRequest(refused.status, exchange)),
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${refused.status} ${STATUS_CODES[refused.status]}\r\n${lines.join('')}\r\n${body}`);
  socket.destroySoon();
}

/** Handles an exchange, and behind it those that came meanwhile: Node never ends the answers of a connection that is gone. */
function handle(socket: Socket, connection: Connection, exchange: Exchange): void {
  const { request, response, next } = exchange;
  connection.current = exchange;
  connection.last = exchange;
  connection.takenAt = performance.now();
  if (isLeaving && connection.waiting.length === 0) response.shouldKeepAlive = false;
  response.once('close', () => {
    // An upload that broke off: no route has seen it, so none has logged it.
    if (!request.complete && !response.headersSent && !connection.hungUp) logRequest(400, exchange);
    connection.current = undefined;
    connection.idleSince = performance.now();
    const following = connection.waiting.shift();
    if (following && !socket.destroyed) handle(socket, connection, following);
  });
  next();
}

function receive(
  request: IncomingMessage,
  response: ServerResponse,
  next: (exchange: Exchange) => void,
): void {
  const { socket } = request;
  const connection = connectionOf(socket);
  const exchange = { request, response, started: performance.now(), next: () => next(exchange) };
  if (request.headers['transfer-encoding'] !== undefined) limitChunks(request);
  if (!connection.current) handle(socket, connection, exchange);
  else if (connection.waiting.length < MAX_WAITING) connection.waiting.push(exchange);
  else socket.destroy();
}

/** Node found no request on a connection, or not in time: says so once, and in no other answer. */
function onClientError(error: Error & { code?: string }, socket: unknown): void {
  if (!(socket instanceof Socket)) return;
  const { current, last, waiting } = connectionOf(socket);
  const incomplete = last?.request.complete ? undefined : last;
  if (!socket.writable || error.code === 'ECONNRESET' || incomplete?.response.headersSent) {
    socket.destroy();
  } else if (current && !incomplete) {
    // What came behind it was no request: its own answer is the last.
    waiting.splice(0);
    current.response.shouldKeepAlive = false;
    current.response.once('close', () => socket.destroySoon());
  } else {
    hangUp(socket, NO_REQUEST[error.code ?? ''] ?? BAD_REQUEST, incomplete);
  }
}

/**
 * Ends connections whose clients take nothing of their answer for 10 s, and those that are kept alive by bytes which are no
 * request: Node counts such bytes as life.
 */
function endStuck(): void {
  const now = performance.now();
  const keepAliveMs = Math.max(...[...servers].map(({ keepAliveTimeout }) => keepAliveTimeout));
  for (const [socket, connection] of connections) {
    const taken = socket.bytesWritten - socket.writableLength;
    if (taken !== connection.taken || socket.writableLength === 0) {
      connection.taken = taken;
      connection.takenAt = now;
    }
    const isStuck = connection.current && now - connection.takenAt > PATIENCE_MS;
    const isIdle = !connection.current && now - connection.idleSince > keepAliveMs + PATIENCE_MS;
    if (isStuck || isIdle) socket.destroy();
  }
}

/**
 * Next.js sends the head of an answer by itself, right before the first bytes of the body, which take it along otherwise: two
 * writes to the system where one will do. It can go when Next.js leaves that to Node.
 */
function sendHeadWithBody(response: ServerResponse): void {
  response.flushHeaders = () => undefined;
}

function stand(server: Server): void {
  const [inside] = server.listeners('request');
  if (!inside) return;
  servers.add(server);
  server.removeAllListeners('request');
  server.on('request', (request, response) => {
    receive(request, response, (exchange) => {
      const refused = refusal(request);
      if (refused) return refuse(exchange, refused);
      if (hasBody(request) && !takesBody(request.method ?? '', pathnameOf(request))) discardBody(exchange);
      sendHeadWithBody(response);
      inside.call(server, request, response);
    });
  });
  server.on('checkExpectation', (request, response) => {
    receive(request, response, (exchange) => refuse(exchange, EXPECTATION_FAILED));
  });
  server.on('connect', (_request, socket) => {
    if (socket instanceof Socket) hangUp(socket, NO_TUNNEL);
  });
  server.on('clientError', onClientError);
  server.headersTimeout = PATIENCE_MS;
  server.requestTimeout = PATIENCE_MS;
  // Node reads how often to look when it begins to listen, and Next.js passes no option (https://github.com/nodejs/node/pull/41263):
  // this makes it begin anew. It can go with a way to pass one. A missing Host is refused as all else.
  Object.assign(server, { connectionsCheckingInterval: LOOK_EVERY_MS, requireHostHeader: false });
  server
    .listeners('listening')
    .find(({ name }) => name === 'setupConnectionsTracking')
    ?.call(server);
  // Nothing else upgrades a connection, yet Next.js always listens for it and leaves a connection to an unknown path open
  // for ever. Where nobody listens, Node answers the request as any other. It can go when Next.js hands such requests to
  // routes (https://github.com/vercel/next.js/pull/58704).
  if (!isDevelopment) server.removeAllListeners('upgrade');
}

/** When the last connection came. */
let connectedAt = 0;

/**
 * Stands in front of Next.js on every server of this process: only what this service serves is let in, one request of a
 * connection after the other. A request that is not complete after 10 s is a 408 and the end of its connection, answered or
 * not; so is an answer of which nothing is taken for as long. One that breaks off has its line in the log. It begins with
 * the first connection.
 */
export function standInFront(): void {
  if (!isDevelopment) setInterval(endStuck, LOOK_EVERY_MS).unref();
  subscribe('net.server.socket', (message) => {
    const socket = typeof message === 'object' && message !== null && 'socket' in message && message.socket;
    const server = socket instanceof Socket && 'server' in socket && socket.server;
    if (!(server instanceof Server && socket instanceof Socket)) return;
    connectedAt = performance.now();
    connectionOf(socket);
    if (!servers.has(server)) stand(server);
  });
}

/** How long a connection may be silent before it counts as idle: a client that is about to send is not cut off. */
const IDLE_MS = 1_000;
/** How long whoever is about to connect at the signal is waited for. */
const ARRIVAL_MS = 100;
/** How often idle connections are looked for. */
const END_IDLE_EVERY_MS = 100;
/** How long those who had connected before may take to be let in. */
const ACCEPT_MS = 5_500;

/** Resolves behind the events that wait: after a busy moment, timers come before what has arrived meanwhile. */
const whatHasCome = () => new Promise((resolve) => setImmediate(resolve));

/**
 * Resolves once those who had connected before are let in: the kernel resets them when the server stops to listen. Node lets
 * in one a turn of its loop, so nobody waits any more after a turn that brought none.
 */
async function acceptTheLast(): Promise<void> {
  await pause(ARRIVAL_MS);
  const until = performance.now() + ACCEPT_MS;
  let since: number;
  do {
    since = performance.now();
    await whatHasCome();
  } while (connectedAt >= since && performance.now() < until);
}

/** Ends connections on which nothing is asked, also those on which nothing ever was: browsers open some ahead. */
async function endIdle(): Promise<void> {
  await whatHasCome();
  const now = performance.now();
  for (const [socket, { current, idleSince }] of connections) {
    if (!current && now - idleSince > IDLE_MS) socket.destroy();
  }
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
 * Takes no connection any more, answers what comes on those that there are, the last answer on each being its end, and
 * resolves once all are gone. A connection on which nothing is asked for a second is ended.
 */
export async function leave(): Promise<void> {
  isLeaving = true;
  for (const { current, waiting } of connections.values()) {
    if (current && waiting.length === 0 && !current.response.headersSent)
      current.response.shouldKeepAlive = false;
  }
  await acceptTheLast();
  setInterval(endIdle, END_IDLE_EVERY_MS).unref();
  await Promise.all([...servers].map(close));
}

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Server as NetServer, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { METHOD_NOT_ALLOWED, type Rejection, takesBody } from '../routing/paths';
import { CombinedResponse, LimitedRequest } from './http-messages';
import {
  EXPECTATION_FAILED,
  INTERNAL_SERVER_ERROR,
  logRejected,
  reject,
  rejectionOfError,
  rejectSocket,
} from './rejection';
import { rejectionFor } from './request-filter';

/** Maximum time for a client to send a complete request, and maximum time without progress while it reads a response. */
const CLIENT_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 5_000;
const CHECK_EVERY_MS = 1_000;
/** Maximum number of pipelined requests that wait on one connection. */
const MAX_WAITING = 32;
/** Idle time after which a shutdown closes a connection. A client that is about to send a request still gets a response. */
const IDLE_MS = 1_000;
/** Time for connections that clients open at the moment of a shutdown to arrive. */
const ARRIVAL_MS = 100;
/** Maximum time for accepting the connections that were opened before a shutdown. */
const ACCEPT_MS = 5_500;

interface Exchange {
  readonly request: LimitedRequest;
  readonly response: ServerResponse;
  readonly receivedAt: number;
}

interface Connection {
  /** The exchange in flight. */
  current?: Exchange | undefined;
  /** The exchange that was started last. Its response may be complete although its request is not. */
  latest?: Exchange;
  readonly waiting: (() => void)[];
  idleSince: number;
  bytesRead: number;
  readAt: number;
}

/**
 * Creates the HTTP server in front of Next.js. The server rejects requests that this service does not serve
 * (request-filter.ts), processes the requests of a connection one after the other, and closes the connections of slow
 * clients. A request has to be complete after 10 s (408), and a client has to read some part of a response every 10 s.
 *
 * `drain` closes each connection after its last response, stops accepting connections, and resolves when all connections
 * are closed.
 */
export function httpServer(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>): {
  readonly server: NetServer;
  drain(): Promise<void>;
} {
  const connections = new Map<Socket, Connection>();
  let connectedAt = 0;
  let isDraining = false;

  /** Runs `respond` after the previous response. Node.js would not close the pending responses of a lost connection. */
  function enqueue(request: LimitedRequest, response: ServerResponse, respond: (exchange: Exchange) => void) {
    const { socket } = request;
    const connection = connections.get(socket);
    if (!connection) return;
    const exchange = { request, response, receivedAt: performance.now() };
    const start = () => {
      Object.assign(connection, { current: exchange, latest: exchange, readAt: performance.now() });
      if (isDraining && connection.waiting.length === 0) response.shouldKeepAlive = false;
      response.once('close', () => {
        const isLost = !request.complete && !response.headersSent && !socket.writableEnded;
        if (isLost) logRejected(400, exchange);
        Object.assign(connection, { current: undefined, idleSince: performance.now() });
        const next = connection.waiting.shift();
        if (!socket.destroyed) next?.();
      });
      respond(exchange);
    };
    request.once('too-many-chunks', () => closeAfterResponse(new Error('Too many chunks'), socket));
    if (!connection.current) start();
    else if (connection.waiting.length < MAX_WAITING) connection.waiting.push(start);
    else socket.destroy();
  }

  /** Does not read the body of a request, and closes the connection after the response. */
  function discardBody({ request, response }: Exchange): void {
    if (!request.hasBody) return;
    response.shouldKeepAlive = false;
    request.discardBody();
  }

  function rejectRequest(exchange: Exchange, rejection: Rejection): void {
    discardBody(exchange);
    reject(exchange, exchange.response, rejection);
  }

  /** Handles bytes that are not a request. Closes the connection after the response in flight, or after a rejection. */
  function closeAfterResponse(error: Error & { code?: string }, socket: unknown): void {
    if (!(socket instanceof Socket)) return;
    const { current, latest, waiting } = connections.get(socket) ?? {};
    const incomplete = latest?.request.complete ? undefined : latest;
    if (!socket.writable || error.code === 'ECONNRESET' || incomplete?.response.headersSent) socket.destroy();
    else if (!current || incomplete) rejectSocket(socket, rejectionOfError(error), incomplete);
    else {
      waiting?.splice(0);
      current.response.shouldKeepAlive = false;
      current.response.once('close', () => socket.destroySoon());
    }
  }

  function closeSlowConnections(): void {
    const now = performance.now();
    for (const [socket, connection] of connections) {
      const bytesRead = socket.bytesWritten - socket.writableLength;
      if (bytesRead !== connection.bytesRead || socket.writableLength === 0)
        Object.assign(connection, { bytesRead, readAt: now });
      const [since, limit] = connection.current
        ? [connection.readAt, CLIENT_TIMEOUT_MS]
        : [connection.idleSince, isDraining ? IDLE_MS : CLIENT_TIMEOUT_MS + KEEP_ALIVE_MS];
      if (now - since > limit) socket.destroy();
    }
  }

  /** Accepts the connections that clients have opened, because the kernel resets them when the server stops listening. */
  async function acceptOpenedConnections(): Promise<void> {
    const until = performance.now() + ACCEPT_MS;
    await pause(ARRIVAL_MS);
    for (let since = 0; connectedAt >= since && performance.now() < until; ) {
      since = performance.now();
      // Node.js accepts a connection in each iteration of the event loop.
      await new Promise(setImmediate);
    }
  }

  const server = createServer(
    {
      IncomingMessage: LimitedRequest,
      ServerResponse: CombinedResponse,
      requestTimeout: CLIENT_TIMEOUT_MS,
      headersTimeout: CLIENT_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      // The request filter rejects a request without a Host header.
      requireHostHeader: false,
    },
    (request, response) =>
      enqueue(request, response, (exchange) => {
        const rejection = rejectionFor(request);
        if (rejection) return rejectRequest(exchange, rejection);
        if (!takesBody(request)) discardBody(exchange);
        handle(request, response).catch(() => {
          if (response.headersSent) response.destroy();
          else rejectRequest(exchange, INTERNAL_SERVER_ERROR);
        });
      }),
  );
  server
    .on('connection', (socket) => {
      const now = performance.now();
      connectedAt = now;
      connections.set(socket, { waiting: [], idleSince: now, bytesRead: 0, readAt: now });
      socket.once('close', () => connections.delete(socket));
    })
    .on('checkExpectation', (request, response) =>
      enqueue(request, response, (exchange) => rejectRequest(exchange, EXPECTATION_FAILED)),
    )
    .on('connect', (_request, socket) => {
      // Node.js has removed its own listener for errors of this socket.
      socket.on('error', () => socket.destroy());
      if (!(socket instanceof Socket) || connections.get(socket)?.current) socket.destroy();
      else rejectSocket(socket, METHOD_NOT_ALLOWED);
    })
    .on('clientError', closeAfterResponse);
  // setImmediate() runs after pending I/O events, because client data may have arrived while the process was busy.
  setInterval(() => setImmediate(closeSlowConnections), CHECK_EVERY_MS).unref();

  return {
    server,
    async drain() {
      isDraining = true;
      for (const { current, waiting } of connections.values()) {
        if (current && waiting.length === 0 && !current.response.headersSent)
          current.response.shouldKeepAlive = false;
      }
      await acceptOpenedConnections();
      // http.Server.close() would close idle connections at once, also those whose clients are about to send.
      await new Promise((resolve) => NetServer.prototype.close.call(server, resolve));
    },
  };
}

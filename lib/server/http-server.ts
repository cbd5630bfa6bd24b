import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { Server as NetServer, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { isApi, METHOD_NOT_ALLOWED, type Rejection, takesBody } from '../routing/paths';
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
/** Idle time after which a client should open a new connection, according to the `keep-alive` header of a response. */
const KEEP_ALIVE_MS = 5_000;
const CHECK_EVERY_MS = 1_000;
/** Maximum number of pipelined requests that wait on one connection. */
const MAX_WAITING = 32;
/** Idle time after which a shutdown closes a connection. Before that, the client can still send a request. */
const IDLE_MS = 1_000;
/** Pause at the start of a shutdown. Connections that clients opened shortly before the shutdown arrive during this pause. */
const ARRIVAL_MS = 100;
/** Maximum time for accepting the connections that clients opened before a shutdown. */
const ACCEPT_MS = 5_500;
/**
 * A body may have 1,024 chunks, and one more for every 64 bytes. A body with more chunks is rejected, because Next.js copies
 * each chunk.
 */
const MAX_SMALL_CHUNKS = 1_024;
const MIN_CHUNK_BYTES = 64;

/**
 * A request that can discard its body. If the body has too many chunks, the request stops reading and emits `too-many-chunks`
 * once.
 */
class LimitedRequest extends IncomingMessage {
  declare readonly method: string;
  declare readonly url: string;
  readonly receivedAt = performance.now();
  #chunksLeft = MAX_SMALL_CHUNKS;
  #isDiscarded = false;

  /**
   * Ends the body without reading the rest of it. Returns true if there is a body. The caller must then close the connection
   * after the response.
   */
  discardBody(): boolean {
    const { 'transfer-encoding': encoding, 'content-length': length } = this.headers;
    if (encoding === undefined && Number(length ?? 0) === 0) return false;
    // Marks the request as complete, because Node.js closes the connection of an incomplete request before it sends the
    // response.
    this.complete = true;
    this.push(null);
    this.#isDiscarded = true;
    return true;
  }

  /** Receives a chunk from the HTTP parser. The parser stops reading the socket if the return value is false. */
  override push(chunk: Buffer | string | null, encoding?: BufferEncoding): boolean {
    if (this.#isDiscarded) return false;
    if (chunk !== null) this.#chunksLeft += chunk.length / MIN_CHUNK_BYTES - 1;
    if (this.#chunksLeft >= 0) return super.push(chunk, encoding);
    this.#isDiscarded = true;
    this.emit('too-many-chunks');
    return false;
  }
}

/** A response that sends its headers and the first bytes of its body in one packet. */
class CombinedResponse extends ServerResponse<LimitedRequest> {
  /** Next.js calls this immediately before it writes the first bytes. */
  override flushHeaders(): void {
    const { socket } = this;
    // Corks the socket and not the response, because `end()` of a corked response sends the last chunk before the earlier
    // chunks (Node.js 22 and 24).
    socket?.cork();
    process.nextTick(() => socket?.uncork());
    super.flushHeaders();
  }
}

interface Connection {
  /** The response in flight. */
  current?: CombinedResponse | undefined;
  /** The response that was started last. It may be complete while the rest of its request still arrives. */
  latest?: CombinedResponse;
  /** Functions that start the pipelined requests, in the order of the requests. */
  readonly waiting: (() => void)[];
  /**
   * Time from which the connection counts as idle. `closeSlowConnections` sets it at its first run after the connection was
   * opened or its latest response ended, and only a later run can close the connection. Between the two runs, Node.js can read
   * a request that has already arrived.
   */
  idleSince?: number | undefined;
  /** Number of bytes that the socket has passed to the operating system. It stops growing if the client does not read. */
  bytesSent: number;
  /**
   * Last time when `closeSlowConnections` found that `bytesSent` had changed or that no byte was waiting to be sent. The start
   * of the connection and the start of each response also set it.
   */
  lastSentAt: number;
}

/**
 * Creates the HTTP server in front of Next.js. The server rejects requests that this service does not serve
 * (request-filter.ts), processes the requests of a connection one after the other, and closes the connections of slow
 * clients. A client has to send a request within 10 s (408), and has to read some part of a response every 10 s.
 *
 * `drain` closes each connection after its last response, stops accepting connections, and resolves when all connections are
 * closed and no API request is in flight. It also waits for API requests whose clients have disconnected.
 */
export function httpServer(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>): {
  readonly server: NetServer;
  drain(): Promise<void>;
} {
  const connections = new Map<Socket, Connection>();
  const apiRequests = new Set<Promise<void>>();
  let connectedAt = 0;
  let isDraining = false;

  /**
   * Runs `respond` after the previous response of the connection. Closes the connection if too many requests wait. Does not
   * use the queue of Node.js, because that queue does not close the pending responses of a lost connection.
   */
  function enqueue(response: CombinedResponse, respond: () => void): void {
    const { req: request } = response;
    const { socket } = request;
    const connection = connections.get(socket);
    if (!connection) return;
    const start = () => {
      Object.assign(connection, { current: response, latest: response, lastSentAt: performance.now() });
      if (isDraining && connection.waiting.length === 0) response.shouldKeepAlive = false;
      response.once('close', () => {
        const isLost = !request.complete && !response.headersSent && !socket.writableEnded;
        if (isLost) logRejected(400, request);
        Object.assign(connection, { current: undefined, idleSince: undefined });
        const next = connection.waiting.shift();
        if (!socket.destroyed) next?.();
      });
      respond();
    };
    request.once('too-many-chunks', () => closeAfterResponse(new Error(), socket));
    if (!connection.current) start();
    else if (connection.waiting.length < MAX_WAITING) connection.waiting.push(start);
    else socket.destroy();
  }

  /** Discards the body of a request. If the request has a body, closes the connection after the response. */
  function discardBody(response: CombinedResponse): void {
    if (response.req.discardBody()) response.shouldKeepAlive = false;
  }

  function rejectRequest(response: CombinedResponse, rejection: Rejection): void {
    discardBody(response);
    reject(response, rejection);
  }

  /**
   * Handles an error of a connection or of a request body. Closes the connection after the response in flight, or after a
   * rejection. If neither a response nor a rejection can be sent, closes the connection immediately.
   */
  function closeAfterResponse(error: Error & { code?: string }, socket: unknown): void {
    if (!(socket instanceof Socket)) return;
    const { current, latest, waiting } = connections.get(socket) ?? {};
    const incomplete = latest?.req.complete ? undefined : latest;
    if (!socket.writable || error.code === 'ECONNRESET' || incomplete?.headersSent) socket.destroy();
    else if (!current || incomplete) rejectSocket(socket, rejectionOfError(error), incomplete?.req);
    else {
      waiting?.splice(0);
      current.shouldKeepAlive = false;
      current.once('close', () => socket.destroySoon());
    }
  }

  /** Closes the connections of clients that do not read a response or have been idle for too long. */
  function closeSlowConnections(): void {
    const now = performance.now();
    for (const [socket, connection] of connections) {
      const bytesSent = socket.bytesWritten - socket.writableLength;
      if (bytesSent !== connection.bytesSent || socket.writableLength === 0)
        Object.assign(connection, { bytesSent, lastSentAt: now });
      connection.idleSince ??= now;
      const [since, limit] = connection.current
        ? [connection.lastSentAt, CLIENT_TIMEOUT_MS]
        : [connection.idleSince ?? now, isDraining ? IDLE_MS : CLIENT_TIMEOUT_MS + KEEP_ALIVE_MS];
      if (now - since > limit) socket.destroy();
    }
  }

  /**
   * Accepts the connections that clients have already opened. Otherwise the kernel would reset them when the server stops
   * listening.
   */
  async function acceptOpenedConnections(): Promise<void> {
    const until = performance.now() + ACCEPT_MS;
    await pause(ARRIVAL_MS);
    for (let since = 0; connectedAt >= since && performance.now() < until; ) {
      since = performance.now();
      // Node.js accepts connections in each iteration of the event loop. This loop ends after the first iteration that accepts
      // no connection.
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
      // request-filter.ts rejects a request without a Host header.
      requireHostHeader: false,
    },
    (request, response) =>
      enqueue(response, () => {
        const rejection = rejectionFor(request);
        if (rejection) return rejectRequest(response, rejection);
        if (!takesBody(request)) discardBody(response);
        const handled = handle(request, response)
          .catch(() => {
            if (response.headersSent) response.destroy();
            else rejectRequest(response, INTERNAL_SERVER_ERROR);
          })
          .finally(() => apiRequests.delete(handled));
        // Adds only API requests. For a download that the client has aborted, Next.js never settles the promise, and `drain`
        // would await the promise forever.
        if (isApi(request.url)) apiRequests.add(handled);
      }),
  );
  server
    .on('connection', (socket) => {
      const now = performance.now();
      connectedAt = now;
      connections.set(socket, { waiting: [], bytesSent: 0, lastSentAt: now });
      socket.once('close', () => connections.delete(socket));
    })
    .on('checkExpectation', (_request, response) =>
      enqueue(response, () => rejectRequest(response, EXPECTATION_FAILED)),
    )
    .on('connect', (_request, socket) => {
      // Node.js has removed its own listener for errors of this socket.
      socket.on('error', () => socket.destroy());
      if (!(socket instanceof Socket) || connections.get(socket)?.current) socket.destroy();
      else rejectSocket(socket, METHOD_NOT_ALLOWED);
    })
    // Without this listener, Node.js closes a connection that was idle for KEEP_ALIVE_MS, even if the next request has arrived
    // but a busy process has not read it yet. `closeSlowConnections` closes idle connections instead.
    .on('timeout', () => undefined)
    .on('clientError', closeAfterResponse);
  // `setImmediate` runs the check after pending I/O events, such as client data that arrived while the process was busy.
  setInterval(() => setImmediate(closeSlowConnections), CHECK_EVERY_MS).unref();

  return {
    server,
    async drain() {
      isDraining = true;
      for (const { current, waiting } of connections.values()) {
        if (current && waiting.length === 0 && !current.headersSent) current.shouldKeepAlive = false;
      }
      await acceptOpenedConnections();
      // Calls the method of net.Server. The method of http.Server would immediately close idle connections, even if their
      // clients are about to send a request.
      await new Promise((resolve) => NetServer.prototype.close.call(server, resolve));
      await Promise.all(apiRequests);
    },
  };
}

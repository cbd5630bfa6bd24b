import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { log, requestIdOf } from '../log';
import { apiRootOf, BAD_REQUEST, type Rejection } from '../routing/paths';

export const EXPECTATION_FAILED: Rejection = { status: 417, message: 'Expectation failed' };

export const INTERNAL_SERVER_ERROR: Rejection = { status: 500, message: 'Internal Server Error' };
export const HEADERS_TOO_LARGE: Rejection = { status: 431, message: 'Request header fields too large' };

/** Rejections by error code of the Node.js HTTP server. An error with any other code leads to a 400. */
const REJECTIONS = new Map<string | undefined, Rejection>([
  ['ERR_HTTP_REQUEST_TIMEOUT', { status: 408, message: 'Request timeout' }],
  ['HPE_HEADER_OVERFLOW', HEADERS_TOO_LARGE],
]);

export const rejectionOfError = ({ code }: { readonly code?: string }): Rejection =>
  REJECTIONS.get(code) ?? BAD_REQUEST;

/** An IncomingMessage that is a request, so it has a method and a URL. A response that a client receives has neither. */
export type ServerRequest = IncomingMessage & { readonly method: string; readonly url: string };

/** Returns the path of a request without the query string. */
export const pathnameOf = ({ url }: ServerRequest): string => url.replace(/\?.*/, '');

/** A request with the time at which its headers were received, as `performance.now()` returns it. */
type ReceivedRequest = ServerRequest & { readonly receivedAt: number };

/**
 * Logs a request that the HTTP server rejects or whose connection is lost, and returns the id of the request. Instead of the
 * path, the log line has only the API root, which is the first segment of an API path (`apiRootOf` in lib/routing/paths.ts).
 * The other segments may be personal data.
 */
export function logRejected(status: number, request?: ReceivedRequest): string {
  const requestId = requestIdOf(request?.headers['x-request-id']);
  const route = request ? `${request.method} ${apiRootOf(pathnameOf(request))}` : 'none';
  const ms = request ? Math.round(performance.now() - request.receivedAt) : 0;
  log.info({ requestId, route, status, ms }, 'request');
  return requestId;
}

const bodyOf = ({ message }: Rejection) => JSON.stringify({ message });
const headersOf = ({ headers }: Rejection, requestId: string) => ({
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-request-id': requestId,
  ...headers,
});

/** Responds to a request with a rejection in JSON and logs the request. */
export function reject(response: ServerResponse<ReceivedRequest>, rejection: Rejection): void {
  const requestId = logRejected(rejection.status, response.req);
  response.writeHead(rejection.status, headersOf(rejection, requestId));
  // Node.js omits the body of a response to a HEAD request.
  response.end(bodyOf(rejection));
}

/**
 * Writes a rejection directly to a socket, without a ServerResponse. Logs the request, if there is one, and closes the
 * connection.
 */
export function rejectSocket(socket: Socket, rejection: Rejection, request?: ReceivedRequest): void {
  const body = bodyOf(rejection);
  const lines = Object.entries({
    ...headersOf(rejection, logRejected(rejection.status, request)),
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(
    `HTTP/1.1 ${rejection.status} ${STATUS_CODES[rejection.status]}\r\n${lines.join('')}\r\n${body}`,
  );
  socket.destroySoon();
}

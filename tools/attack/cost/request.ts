import { connect } from 'node:net';

/** A request before it is serialized. */
export interface CostRequest {
  readonly method: 'GET' | 'POST';
  /** Path and query. */
  readonly target: string;
  /** Headers in the order in which they are sent. A name may occur more than once. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body?: string;
  /** True if the body is sent in chunks of one byte each. */
  readonly oneByteChunks?: boolean;
}

function framing({ body, oneByteChunks = false }: CostRequest): string {
  if (body === undefined) return '\r\n';
  if (!oneByteChunks) return `Content-Length: ${body.length}\r\n\r\n${body}`;
  return `Transfer-Encoding: chunked\r\n\r\n${body.replace(/./gs, '1\r\n$&\r\n')}0\r\n\r\n`;
}

/** Returns the bytes of a request. The request must contain only ASCII characters. */
export function serialize(request: CostRequest): Buffer {
  const { method, target, headers } = request;
  const fields = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const head = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${fields}`;
  return Buffer.from(`${head}${framing(request)}`, 'latin1');
}

/** Maximum time until the server closes a connection. It is far above the slowest response that `npm run attack` measured. */
const TIMEOUT_MS = 60_000;

/**
 * Sends bytes to the service over a new loopback connection. When the connection is closed, resolves with the status of the
 * response, or with 0 if the server closed the connection without a response. Rejects if the server does not accept the
 * connection or does not close it in time.
 */
export function send(serviceUrl: string, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(serviceUrl).port), 'localhost', () => socket.write(bytes));
    let start = '';
    const timeout = setTimeout(() => {
      socket.destroy();
      reject(new Error('The server did not close a connection in time.'));
    }, TIMEOUT_MS);
    socket
      .on('data', (chunk: Buffer) => {
        if (start.length < 16) start += chunk.toString('latin1');
      })
      // An error is expected after this client has sent a byte, because the server may close the connection before the request
      // is complete.
      .on('error', (error) => {
        if (socket.bytesWritten === 0) reject(error);
      })
      .on('close', () => {
        clearTimeout(timeout);
        resolve(Number(/^HTTP\/1\.1 (\d{3}) /.exec(start)?.[1] ?? 0));
      });
  });
}

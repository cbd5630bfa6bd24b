import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Opens a connection to the service. Rejects if the connection fails. Ignores later errors of the connection. */
export async function connected(serviceUrl: string): Promise<Socket> {
  const socket = connect(Number(new URL(serviceUrl).port), 'localhost');
  await once(socket, 'connect');
  return socket.on('error', () => undefined);
}

/** Result of an exchange on one connection. */
export interface RawResponse {
  /** Statuses of all responses, in order. */
  readonly statuses: readonly number[];
  /** Everything that the server sent, as Latin-1. */
  readonly text: string;
  /** Number of chunks in which the text arrived. */
  readonly pieces: number;
  /** True if the server closed the connection, false if it was still open at the timeout. */
  readonly closed: boolean;
  /** Number of bytes that the client sent. */
  readonly bytesWritten: number;
}

export interface RawRequest {
  /** Sent unchanged, as Latin-1. */
  readonly bytes: string;
  /** Sent repeatedly after `bytes`, with a pause after each chunk. */
  readonly endless?: { readonly chunk: string; readonly pauseMilliseconds: number };
  /**
   * Does not read the response. The client then detects a closed connection only when it sends more bytes. Set `endless` as
   * well. Otherwise, the exchange ends only at the timeout.
   */
  readonly pauseReading?: boolean;
  /** Timeout. Default: 40 s. A correct server closes the connection earlier, so only a failing test waits that long. */
  readonly milliseconds?: number;
}

/** Writes bytes to a new connection. Resolves once the server closes the connection, or at the timeout. */
export function exchange(serviceUrl: string, request: RawRequest): Promise<RawResponse> {
  const { bytes, endless, pauseReading = false, milliseconds = 40_000 } = request;
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(serviceUrl).port), 'localhost');
    const chunks: Buffer[] = [];
    let pause: NodeJS.Timeout | undefined;
    const done = (closed: boolean) => {
      clearTimeout(timeout);
      clearTimeout(pause);
      socket.destroy();
      const text = Buffer.concat(chunks).toString('latin1');
      const statuses = [...text.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status));
      resolve({ statuses, text, pieces: chunks.length, closed, bytesWritten: socket.bytesWritten });
    };
    const timeout = setTimeout(() => done(false), milliseconds);
    const feed = () => {
      if (!endless || socket.destroyed) return;
      socket.write(endless.chunk, 'latin1', () => {
        pause = setTimeout(feed, endless.pauseMilliseconds);
      });
    };
    socket
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('error', () => undefined)
      .on('close', () => done(true));
    if (pauseReading) socket.pause();
    socket.write(bytes, 'latin1', feed);
  });
}

/** Returns a request line, headers and an empty line. Default headers: `Host: localhost` and `Connection: close`. */
export function requestHead(line: string, headers: Record<string, string> = {}): string {
  const all = { Host: 'localhost', Connection: 'close', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line}\r\n${lines.join('')}\r\n`;
}

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Opens a connection to the service. Rejects if the connection fails. Ignores later errors of the connection. */
export async function connected(serviceUrl: string): Promise<Socket> {
  const socket = connect(Number(new URL(serviceUrl).port), 'localhost');
  await once(socket, 'connect');
  return socket.on('error', () => undefined);
}

/**
 * Writes bytes (Latin-1) to a new connection. Resolves once the server closes the connection, or at the timeout. Returns
 * everything that the server sent, the statuses of all responses, and whether the server closed the connection.
 */
export function exchange(serviceUrl: string, bytes: string, milliseconds = 40_000) {
  return new Promise<{ statuses: number[]; text: string; closed: boolean }>((resolve) => {
    const socket = connect(Number(new URL(serviceUrl).port), 'localhost');
    const chunks: Buffer[] = [];
    const done = (closed: boolean) => {
      clearTimeout(timeout);
      socket.destroy();
      const text = Buffer.concat(chunks).toString('latin1');
      const statuses = [...text.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status));
      resolve({ statuses, text, closed });
    };
    const timeout = setTimeout(() => done(false), milliseconds);
    socket
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('error', () => undefined)
      .on('close', () => done(true));
    socket.write(bytes, 'latin1');
  });
}

/** Returns a request line, headers and an empty line. Default headers: `Host: localhost` and `Connection: close`. */
export function requestHead(line: string, headers: Record<string, string> = {}): string {
  const all = { Host: 'localhost', Connection: 'close', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line}\r\n${lines.join('')}\r\n`;
}

import { randomInt } from 'node:crypto';
import type { Server as HttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { errorCode } from './errors';

/** Listens on 127.0.0.1 and resolves with the port. Port 0 selects any free port. Rejects if the port is in use. */
export function listen(server: Server, port = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('The server has no TCP port.'));
      else resolve(address.port);
    });
  });
}

/** Closes all connections and resolves when the server has stopped listening. */
export function close(server: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/**
 * Returns true if the port is free on both addresses that `localhost` may resolve to, 127.0.0.1 and ::1. On a machine without
 * IPv6, every port counts as free on ::1.
 */
export async function isFree(port: number): Promise<boolean> {
  return (await canListen(port, '127.0.0.1')) && (await canListen(port, '::1'));
}

function canListen(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(!['EADDRINUSE', 'EACCES'].includes(errorCode(error) ?? '')));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/**
 * Returns a random port that is free at the time of the call. The port is below the ephemeral ports (from 32,768 on Linux), so
 * that no outgoing connection takes the port before the caller listens on it.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(20_000, 32_768);
  return (await isFree(port)) ? port : freePort();
}

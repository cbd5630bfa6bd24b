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

/** Returns a port that is free at the time of the call. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * Returns true if the port is free on both addresses that `localhost` may resolve to, 127.0.0.1 and ::1. A port counts as free
 * on an address that this machine does not have.
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

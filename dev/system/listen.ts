import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { Server } from 'node:net';
import getPort from 'get-port';

/** Listens on 127.0.0.1 and resolves with the port. Port 0 selects any free port. Rejects if the port is in use. */
export async function listen(server: Server, port = 0): Promise<number> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no TCP port.');
  return address.port;
}

/** Closes all connections and resolves when the server has stopped listening. */
export function close(server: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/**
 * Returns a port that is free at the time of the call. The port is below the ephemeral ports (from 32,768 on Linux), so that no
 * outgoing connection takes the port before the caller listens on it.
 */
export const freePort = (): Promise<number> => getPort({ port: randomInt(20_000, 32_768) });

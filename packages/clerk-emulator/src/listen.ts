import type { Server } from 'node:http';
import { errorCode } from './errors';

/** Listens on 127.0.0.1 and resolves with the port. Port 0 selects any free port. Rejects if the port is in use. */
export function listen(server: Server, port = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const isInUse = errorCode(error) === 'EADDRINUSE';
      reject(isInUse ? new Error(`Port ${port} is in use.`) : error);
    });
    server.listen(port, '127.0.0.1', () => {
      server.removeAllListeners('error');
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('The server has no TCP port.'));
      else resolve(address.port);
    });
  });
}

/** Closes all connections and resolves when the server has stopped listening. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

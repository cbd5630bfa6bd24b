import type { Server as HttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { errorCode } from './errors';

/** Listens on this machine alone and resolves with the port. Rejects where the port is taken; 0 is any that is free. */
export function listen(server: Server, port = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('It listens at no port'));
      else resolve(address.port);
    });
  });
}

/** Ends every connection, and resolves once nothing listens. */
export function close(server: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** A port that nothing listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** True if a port is free for `localhost`, whichever address that stands for. */
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

import type { Server, ServerResponse } from 'node:http';

/**
 * Closes a connection after this time without data. If data waits to be sent, Node.js starts the time once more. A client that
 * waits for a handler, whose response is in `responses`, is not silent.
 */
export function limitSilence(
  server: Server,
  milliseconds: number,
  responses: ReadonlySet<ServerResponse>,
): void {
  server.timeout = milliseconds;
  server.on('timeout', (socket) => {
    const isHandled = [...responses].some(({ req }) => req.socket === socket && req.complete);
    if (!isHandled || socket.writableLength > 0) socket.destroy();
  });
}

import type { Server, ServerResponse } from 'node:http';

/**
 * Closes a connection of the server after this time without data, because the client does not send or does not read. If
 * data waits to be sent, Node.js starts the time once more. A client that waits for a handler is not silent. `responses` contains
 * the responses that are not closed.
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

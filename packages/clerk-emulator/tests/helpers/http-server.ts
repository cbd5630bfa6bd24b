import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { close, listen } from '../../src/http';

/** Starts an HTTP server that responds with the result of `handler`. */
export async function startHttpServer(handler: (request: Request) => Response | Promise<Response>) {
  const server = createServer(getRequestListener(handler, { overrideGlobalObjects: false }));
  const port = await listen(server);
  return { url: `http://localhost:${port}`, stop: () => close(server) };
}

import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { close, listen } from '../../../dev/system/listen';

/** An HTTP server that answers as a test says. */
export async function startHttpServer(answer: (request: Request) => Response | Promise<Response>) {
  const server = createServer(getRequestListener(answer, { overrideGlobalObjects: false }));
  const port = await listen(server);
  return { url: `http://localhost:${port}`, stop: () => close(server) };
}

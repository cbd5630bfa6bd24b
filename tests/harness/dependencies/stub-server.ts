import { createServer, type RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { close, listen } from '../../../dev/system/listen';

export type StubServer = Awaited<ReturnType<typeof startStubServer>>;

/** Starts an HTTP server on a free port, which records its requests. The default handler responds with 404. */
export async function startStubServer(
  handler: RequestListener = (_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"errors":[]}');
  },
) {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url}`);
    stub.handler(request, response);
  });
  const port = await listen(server);
  const stub = {
    url: `http://localhost:${port}`,
    port,
    /** Method and path of each request so far. */
    calls,
    /** Handles each request. A test can assign another function. */
    handler,
    stop: () => close(server),
  };
  return stub;
}

/** Starts a stub server whose handler maps a `Request` to a `Response`. */
export const startFetchServer = (handler: (request: Request) => Response | Promise<Response>) =>
  startStubServer(getRequestListener(handler, { overrideGlobalObjects: false }));

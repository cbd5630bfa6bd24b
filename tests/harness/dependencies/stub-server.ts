import { createServer, type RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { close, listen } from '../../../dev/system/listen';

/** An HTTP server that records its requests. */
export interface StubServer {
  readonly url: string;
  readonly port: number;
  /** Method and path of each request so far. */
  readonly calls: string[];
  /** Handles each request. A test can assign another function. */
  handler: RequestListener;
  stop(): Promise<void>;
}

/** Starts a stub server on a free port. The default handler responds with 404. */
export async function startStubServer(
  handler: RequestListener = (_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"errors":[]}');
  },
): Promise<StubServer> {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url}`);
    stub.handler(request, response);
  });
  const port = await listen(server);
  const stub: StubServer = {
    url: `http://localhost:${port}`,
    port,
    calls,
    handler,
    stop: () => close(server),
  };
  return stub;
}

/** Starts a stub server whose handler maps a `Request` to a `Response`. */
export const startFetchServer = (handler: (request: Request) => Response | Promise<Response>) =>
  startStubServer(getRequestListener(handler, { overrideGlobalObjects: false }));

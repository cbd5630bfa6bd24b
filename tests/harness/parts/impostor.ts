import { createServer, type RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { close, listen } from '../../../dev/system/listen';

/** Stands where another server should be, and remembers what it was asked. */
export interface Impostor {
  readonly url: string;
  readonly port: number;
  /** Method and path of each request so far. */
  readonly calls: string[];
  /** What it does from now on. */
  answer: RequestListener;
  stop(): Promise<void>;
}

/** Listens on a port of its own and answers as it is told; unless told, it knows nothing. */
export async function startImpostor(
  answer: RequestListener = (_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"errors":[]}');
  },
): Promise<Impostor> {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url}`);
    impostor.answer(request, response);
  });
  const port = await listen(server);
  const impostor: Impostor = {
    url: `http://localhost:${port}`,
    port,
    calls,
    answer,
    stop: () => close(server),
  };
  return impostor;
}

/** The same, with an answer as `fetch` has it. */
export const startHttpServer = (answer: (request: Request) => Response | Promise<Response>) =>
  startImpostor(getRequestListener(answer, { overrideGlobalObjects: false }));

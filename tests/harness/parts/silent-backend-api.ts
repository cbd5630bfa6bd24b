import { createServer } from 'node:http';
import { listen } from '../../../dev/system/listen';

/** Stands where the provider's Backend API should be, knows nothing, and remembers what it was asked. */
export interface SilentBackendApi {
  readonly url: string;
  /** Method and path of each request so far. */
  readonly calls: string[];
  stop(): Promise<void>;
}

/** Listens on a port of its own: with it a test shows that the service asks the provider nothing. */
export async function startSilentBackendApi(): Promise<SilentBackendApi> {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url}`);
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"errors":[]}');
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

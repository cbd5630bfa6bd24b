import { Client } from 'undici';
import { cpuMilliseconds } from '../process-figures';
import type { Server } from './launch';

/** One request, and the status that answers it if all is well. */
export interface LoadRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
}

/** What a number of requests cost, and how they were answered. */
export interface LoadFigures {
  readonly requests: number;
  /** Processor time of the server's process tree. */
  readonly cpuMilliseconds: number;
  readonly milliseconds: number;
  /** One a request, in milliseconds. */
  readonly latencies: readonly number[];
}

const PATIENCE_MILLISECONDS = 30_000;

/** Kept connections to a server, over which it is asked in turns with others. */
export interface Load {
  /** Sends every request once; each connection waits for its answer before it goes on. Rejects over a wrong status. */
  send(requests: readonly LoadRequest[]): Promise<LoadFigures>;
  close(): Promise<unknown>;
}

export function openLoad({ url, pid }: Server, connections: number): Load {
  const clients = Array.from(
    { length: connections },
    () => new Client(url, { headersTimeout: PATIENCE_MILLISECONDS, bodyTimeout: PATIENCE_MILLISECONDS }),
  );
  return {
    async send(requests) {
      const latencies: number[] = [];
      const queue = requests.values();
      const ask = async (client: Client) => {
        for (const { status, body, ...request } of queue) {
          const started = performance.now();
          const answer = await client.request({ ...request, body: body ?? null });
          const text = await answer.body.text();
          latencies.push(performance.now() - started);
          if (answer.statusCode !== status) {
            const { method, path } = request;
            throw new Error(`${method} ${path}: ${answer.statusCode} in place of ${status}: ${text}`);
          }
        }
      };
      const cpuBefore = cpuMilliseconds(pid);
      const began = performance.now();
      await Promise.all(clients.map(ask));
      const milliseconds = performance.now() - began;
      return {
        requests: requests.length,
        cpuMilliseconds: cpuMilliseconds(pid) - cpuBefore,
        milliseconds,
        latencies,
      };
    },
    close: () => Promise.all(clients.map((client) => client.destroy())),
  };
}

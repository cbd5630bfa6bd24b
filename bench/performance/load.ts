import { Client } from 'undici';
import { cpuMilliseconds } from '../process-figures';
import type { Server } from './launch';

/** A request and its expected status. */
export interface LoadRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
}

/** Cost and latency of a series of requests. */
export interface LoadFigures {
  readonly requests: number;
  /** CPU time that the server's process tree used during the series. */
  readonly cpuMilliseconds: number;
  /** Wall time from the first request to the last response. */
  readonly milliseconds: number;
  /** Latency of each request, in milliseconds. */
  readonly latencies: readonly number[];
}

const TIMEOUT_MILLISECONDS = 30_000;

/** Keep-alive connections to a server. */
export interface Load {
  /**
   * Sends each request once over one of the connections. A connection sends its next request after it has received the
   * previous response. Rejects if a response has an unexpected status.
   */
  send(requests: readonly LoadRequest[]): Promise<LoadFigures>;
  close(): Promise<unknown>;
}

export function openLoad({ url, pid }: Server, connections: number): Load {
  const clients = Array.from(
    { length: connections },
    () => new Client(url, { headersTimeout: TIMEOUT_MILLISECONDS, bodyTimeout: TIMEOUT_MILLISECONDS }),
  );
  return {
    async send(requests) {
      const latencies: number[] = [];
      const queue = requests.values();
      const sendQueued = async (client: Client) => {
        for (const { status, body, ...request } of queue) {
          const started = performance.now();
          const response = await client.request({ ...request, body: body ?? null });
          const text = await response.body.text();
          latencies.push(performance.now() - started);
          if (response.statusCode !== status) {
            const { method, path } = request;
            throw new Error(`${method} ${path}: ${response.statusCode} instead of ${status}: ${text}`);
          }
        }
      };
      const cpuBefore = cpuMilliseconds(pid);
      const startedAt = performance.now();
      await Promise.all(clients.map(sendQueued));
      const milliseconds = performance.now() - startedAt;
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

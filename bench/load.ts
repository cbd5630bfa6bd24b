import autocannon from 'autocannon';
import type { BenchRequest } from './requests';
import { cpuMilliseconds, type Server } from './servers';

export const CONNECTIONS = 32;
/** Number of requests before the measured ones, because an idle process is slow at first. */
const UNMEASURED = 200;

/**
 * Sends the unmeasured requests and then `count` requests. Returns the CPU time of the server per measured request, in
 * milliseconds. Rejects if a response has an unexpected status.
 */
export async function cpuPerRequest(
  server: Server,
  makeRequest: () => BenchRequest,
  count: number,
): Promise<number> {
  const requests = Array.from({ length: UNMEASURED + count }, makeRequest);
  const queue = requests.values();
  let sent = 0;
  let before = 0;
  const { statusCodeStats, errors } = await autocannon({
    url: server.url,
    connections: CONNECTIONS,
    amount: requests.length,
    sampleInt: 50, // maximum delay, in milliseconds, between the last response and the end of the run
    requests: [
      {
        setupRequest(defaults) {
          sent += 1;
          if (sent === UNMEASURED) before = cpuMilliseconds(server);
          return { ...defaults, ...queue.next().value };
        },
      },
    ],
  });
  const after = cpuMilliseconds(server);
  const statuses = Object.keys(statusCodeStats ?? {}).join();
  if (errors > 0 || statuses !== String(requests[0]?.status))
    throw new Error(`${requests[0]?.path}: ${errors} failed requests, and statuses ${statuses}`);
  return (after - before) / count;
}

import { setTimeout as pause } from 'node:timers/promises';
import type { TestService } from '../service';
import { type HostileRequest, MARK } from './hostile-request';
import { exchange } from './raw-http';

const CONCURRENCY = 24;
/** Maximum time from the start of a request until the server closes the connection. */
const CONNECTION_MS = 12_000;

/** Statuses of routes, pages, static files and rejections of this service. Node.js itself sends 100. */
const KNOWN = new Set([100, 200, 204, 206, 304, 307, 400, 401, 404, 405, 408, 412, 413, 416, 417, 431]);
const API_LINE = /^\w+ \/(?:auth|users|webhooks)(?:[/ ?]|$)/;

/** Sends a request and returns the problem with the response, or undefined if the response is correct. */
async function problemOf(service: TestService, { line, bytes }: HostileRequest): Promise<string | undefined> {
  const { statuses, text, closed } = await exchange(service.url, { bytes, milliseconds: CONNECTION_MS });
  const problem = () => {
    if (!closed) return 'the connection is still open';
    if (statuses.some((status) => !KNOWN.has(status))) return `status ${statuses}`;
    if (API_LINE.test(line) && /content-type: text\/html/i.test(text)) return 'HTML from the API';
    if (/^\s+at .*\.js:\d|node_modules/m.test(text)) return 'the response contains a stack trace';
    return undefined;
  };
  const found = problem();
  return found && `${found}: ${JSON.stringify(bytes.slice(0, 1500))}`;
}

/** Sends the requests, up to 24 at a time. Resolves with the problems found in the responses, the log and the database. */
export async function attack(
  service: TestService,
  requests: readonly HostileRequest[],
  onProgress: (sent: number) => void = () => undefined,
): Promise<string[]> {
  const problems: string[] = [];
  let next = 0;
  const worker = async () => {
    for (let request = requests[next++]; request; request = requests[next++]) {
      const problem = await problemOf(service, request);
      if (problem) problems.push(problem);
      if (next % 500 === 0) onProgress(next);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  // Gives the last log lines time to arrive.
  await pause(500);
  for (const line of service.output().split('\n')) {
    if (line.toLowerCase().includes(MARK))
      problems.push(`the log contains client input: ${line.slice(0, 300)}`);
    if (/"status":5\d\d/.test(line)) problems.push(`the log contains a server error: ${line.slice(0, 1000)}`);
  }
  const users = await service.database.users();
  if (users.length > 0) problems.push(`${users.length} users were registered`);
  return problems;
}

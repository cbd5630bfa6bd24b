import { setTimeout as pause } from 'node:timers/promises';
import type { TestService } from '../service';
import { type HostileRequest, MARK } from './hostile-request';
import { exchange } from './raw-http';

const AT_ONCE = 24;
/** A connection lives this long after its last byte, at most. */
const CONNECTION_MS = 12_000;

/** Statuses that this service knows: of routes, of pages, of files, of what it refuses; and 100, which Node says itself. */
const KNOWN = new Set([100, 200, 204, 206, 304, 307, 400, 401, 404, 405, 408, 412, 413, 416, 417, 431]);
const API_LINE = /^\w+ \/(?:auth|users|webhooks)(?:[/ ?]|$)/;

/** What is wrong with the answer to a request; undefined: nothing. */
async function problemOf(service: TestService, { line, bytes }: HostileRequest): Promise<string | undefined> {
  const { statuses, text, closed } = await exchange(service.url, { bytes, milliseconds: CONNECTION_MS });
  const problem = () => {
    if (!closed) return 'the connection is still open';
    if (statuses.some((status) => !KNOWN.has(status))) return `answered ${statuses}`;
    if (API_LINE.test(line) && /content-type: text\/html/i.test(text)) return 'HTML from the API';
    if (/^\s+at .*\.js:\d|node_modules/m.test(text)) return 'the answer shows a stack';
    return undefined;
  };
  const found = problem();
  return found && `${found}: ${JSON.stringify(bytes.slice(0, 1500))}`;
}

/** Sends requests, some at once, and resolves with what is wrong with the answers, the log and the service afterwards. */
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
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await pause(500);
  for (const line of service.output().split('\n')) {
    if (line.toLowerCase().includes(MARK))
      problems.push(`the log holds what a caller sent: ${line.slice(0, 300)}`);
    if (/"status":5\d\d/.test(line)) problems.push(`the log tells of a failure: ${line.slice(0, 1000)}`);
  }
  const users = await service.database.users();
  if (users.length > 0) problems.push(`${users.length} users were registered`);
  return problems;
}

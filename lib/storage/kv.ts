import { VercelKV } from '@vercel/kv';
import { ConsecutiveBreaker, circuitBreaker, handleAll } from 'cockatiel';
import { Pool } from 'undici';
import * as z from 'zod/mini';
import { parseEnvironmentSubset, variables } from '../base/env';
import { describeError } from '../base/errors';
import { log } from '../base/log';
import { processState } from '../base/process-state';
import { telemetry } from '../base/telemetry';
import { batch } from '../core/async';

/** Time limit of one call to the store. A request with a session makes at most two calls. */
const TIMEOUT_MS = 500;
const MAX_CONNECTIONS = 32;
const MAX_RESPONSE_BYTES = 1024 * 1024;
/** Number of consecutive requests that fail, after which commands are rejected immediately. */
const FAILURES = 5;
/** Time after which one request tests whether the store is available again. */
const TEST_AFTER_MS = 1_000;

/** The variables of the store. A command may set no others. */
export const KvAddress = z.pipe(
  z.pick(variables, { KV_REST_API_URL: true, KV_REST_API_TOKEN: true }),
  z.transform(({ KV_REST_API_URL: url, KV_REST_API_TOKEN: token }) => ({ url, token })),
);
type Address = Readonly<z.infer<typeof KvAddress>>;

/** Reply of the store to one command. */
interface Reply {
  readonly result?: never;
  readonly error?: string;
}

/** Parses the replies. Encodes each string result as JSON, because the client parses string results as JSON. */
function parseReplies(text: string, count: number): readonly Reply[] {
  const replies = JSON.parse(text, (key, value) =>
    key === 'result' && typeof value === 'string' ? JSON.stringify(value) : value,
  );
  if (Array.isArray(replies) && replies.length === count) return replies;
  throw new Error('KV store sent a different number of results');
}

/**
 * Creates a KV client that uses keep-alive connections, and that sends the commands of one event loop iteration in one request. The
 * client's own transport, `fetch`, takes several times the CPU time. A command rejects if the store is unreachable, rejects the
 * request or does not respond within `timeoutMs`, or if `gate` rejects.
 */
export function createKv(
  { url, token }: Address,
  timeoutMs = TIMEOUT_MS,
  gate: (send: () => Promise<readonly Reply[]>) => Promise<readonly Reply[]> = (send) => send(),
): VercelKV {
  const { origin, pathname } = new URL(url);
  const pool = new Pool(origin, { connections: MAX_CONNECTIONS, maxResponseSize: MAX_RESPONSE_BYTES });
  const path = `${pathname.replace(/\/$/, '')}/pipeline`;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };

  async function send(commands: readonly unknown[]): Promise<readonly Reply[]> {
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(new Error('KV store did not respond')), timeoutMs);
    try {
      const { statusCode, body } = await pool.request({
        path,
        method: 'POST',
        headers,
        body: JSON.stringify(commands),
        signal: timeout.signal,
      });
      const text = await body.text();
      if (statusCode !== 200) {
        const error = new Error('KV store rejected the request', { cause: text });
        throw Object.assign(error, { code: `HTTP_${statusCode}` });
      }
      return parseReplies(text, commands.length);
    } finally {
      clearTimeout(timer);
    }
  }

  // Equal reads of a batch share a command. It is sent after the call of each of them, so no read is older than its call.
  const enqueue = batch(async (commands: readonly unknown[]) => {
    const keys = commands.map((command, index) =>
      Array.isArray(command) && command[0] === 'get' ? String(command[1]) : index,
    );
    const distinct = new Map(keys.map((key, index) => [key, commands[index]]));
    const replies = await gate(() => send([...distinct.values()]));
    const places = [...distinct.keys()];
    return keys.map((key) => replies[places.indexOf(key)] ?? {});
  });
  return new VercelKV({ request: ({ body }) => enqueue(body) });
}

/** Returns the client of this process. A store that responds to a request only with errors has failed, as after its quota. */
function connect(): VercelKV {
  const failures = handleAll.orWhenResult(
    (replies) => Array.isArray(replies) && replies.every(({ error }) => error !== undefined),
  );
  const breaker = circuitBreaker(failures, {
    halfOpenAfter: TEST_AFTER_MS,
    breaker: new ConsecutiveBreaker(FAILURES),
  });
  let isSkipped = false;
  // A failed test opens the breaker again, but is not a new outage.
  breaker.onBreak((reason) => {
    if (isSkipped) return;
    isSkipped = true;
    telemetry()?.breakerOpened();
    log.warn(
      { error: 'error' in reason ? describeError(reason.error) : { name: 'UpstashError' } },
      'cache skipped',
    );
  });
  breaker.onReset(() => {
    isSkipped = false;
    telemetry()?.breakerClosed();
    log.info('cache in use again');
  });
  return createKv(parseEnvironmentSubset(KvAddress), TIMEOUT_MS, (send) => breaker.execute(send));
}

/**
 * Runs a command with the KV client of this process. Rejects if the store fails or does not respond within 500 ms. After five
 * consecutive requests to the store have failed, rejects immediately, except for one request a second, until one succeeds.
 */
export async function withKv<T>(command: (kv: VercelKV) => Promise<T>): Promise<T> {
  return command(processState('kv', connect));
}

import { VercelKV } from '@vercel/kv';
import * as z from 'zod/mini';
import { circuitBreaker } from '../concurrency/circuit-breaker';
import { parseEnvironmentSubset, variables } from '../env';
import { describeError } from '../errors/describe-error';
import { log } from '../log';
import { telemetry } from '../telemetry/with-span';
import { kvRequester } from './kv-transport';

/** Time limit of one call. A request makes at most two. */
const TIMEOUT_MS = 500;
const FAILURE_THRESHOLD = 5;
const RESET_TIMEOUT_MS = 1_000;

function connect() {
  const { KV_REST_API_URL: url, KV_REST_API_TOKEN: token } = parseEnvironmentSubset(
    z.pick(variables, { KV_REST_API_URL: true, KV_REST_API_TOKEN: true }),
  );
  const client = new VercelKV(kvRequester({ url, token, timeoutMs: TIMEOUT_MS }));
  const breaker = circuitBreaker({
    failureThreshold: FAILURE_THRESHOLD,
    resetTimeoutMs: RESET_TIMEOUT_MS,
    // A read, because a store whose quota is used up may still respond to PING.
    probe: () => client.get('auth:probe'),
    now: () => performance.now(),
    onOpen: (error) => {
      telemetry()?.breakerOpened();
      log.warn({ error: describeError(error) }, 'cache skipped');
    },
    onClose: () => {
      telemetry()?.breakerClosed();
      log.info('cache in use again');
    },
  });
  return { client, breaker };
}

let connection: ReturnType<typeof connect> | undefined;

/**
 * Runs a command with the KV client of this process. Rejects with any error of the store, and after 500 ms.
 *
 * After five consecutive failures it rejects immediately, without a call. A background probe, at most one a second and only
 * while there are commands, detects when the store is available again.
 */
export async function withKv<T>(command: (kv: VercelKV) => Promise<T>): Promise<T> {
  connection ??= connect();
  const { client, breaker } = connection;
  return breaker(() => command(client));
}

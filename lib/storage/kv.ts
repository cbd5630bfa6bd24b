import { VercelKV } from '@vercel/kv';
import * as z from 'zod/mini';
import { circuitBreaker } from '../concurrency/circuit-breaker';
import { parseEnvironmentSubset, variables } from '../env';
import { describeError } from '../errors/describe-error';
import { log } from '../log';
import { kvRequester } from './kv-transport';

/** How long a call ever takes; a request makes two at most. */
const TIMEOUT_MS = 500;
const FAULTS_UNTIL_OPEN = 5;
const PROBE_AFTER_MS = 1_000;

function connect() {
  const { KV_REST_API_URL: url, KV_REST_API_TOKEN: token } = parseEnvironmentSubset(
    z.pick(variables, { KV_REST_API_URL: true, KV_REST_API_TOKEN: true }),
  );
  const client = new VercelKV(kvRequester({ url, token, timeoutMs: TIMEOUT_MS }));
  const breaker = circuitBreaker({
    failureThreshold: FAULTS_UNTIL_OPEN,
    resetTimeoutMs: PROBE_AFTER_MS,
    // A read, as requests send it: a store whose quota is used up may still respond to PING.
    probe: () => client.get('auth:probe'),
    now: () => performance.now(),
    onOpen: (fault) => {
      globalThis.telemetry?.breakerOpened();
      log.warn({ error: describeError(fault) }, 'cache skipped');
    },
    onClose: () => {
      globalThis.telemetry?.breakerClosed();
      log.info('cache in use again');
    },
  });
  return { client, breaker };
}

let connection: ReturnType<typeof connect> | undefined;

/**
 * Runs a command against the KV store, by this process's one client, and ends within 500 ms; rejects over any fault.
 *
 * After five faults in a row the store is not called any more and the rejection comes at once; a background probe, at
 * most one a second and only while there are requests, ends that. Safe under any concurrency.
 */
export async function withKv<T>(command: (kv: VercelKV) => Promise<T>): Promise<T> {
  connection ??= connect();
  const { client, breaker } = connection;
  return breaker(() => command(client));
}

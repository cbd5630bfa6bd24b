import type { VercelKV } from '@vercel/kv';
import { type BreakerOptions, circuitBreaker } from '../concurrency/circuit-breaker';

const FAILURE_THRESHOLD = 5;
const RESET_TIMEOUT_MS = 1_000;

/**
 * Returns a function that runs commands with a KV client. After five consecutive failures, the function rejects immediately
 * without a call. While commands arrive, a background probe checks at most once a second whether the store is available again.
 */
export function kvBreaker(client: VercelKV, callbacks: Pick<BreakerOptions, 'onOpen' | 'onClose'>) {
  const breaker = circuitBreaker({
    failureThreshold: FAILURE_THRESHOLD,
    resetTimeoutMs: RESET_TIMEOUT_MS,
    // The probe is a read, because a store whose quota is used up may still respond to PING.
    probe: () => client.get('auth:probe'),
    now: () => performance.now(),
    ...callbacks,
  });
  return <T>(command: (kv: VercelKV) => Promise<T>): Promise<T> => breaker(() => command(client));
}

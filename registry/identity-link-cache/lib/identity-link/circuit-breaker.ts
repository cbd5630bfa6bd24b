// Copied from lib/concurrency/circuit-breaker.ts, lib/storage/kv-breaker.ts of identity-link.
import type { VercelKV } from '@vercel/kv';

/** Thresholds and callbacks of a circuit breaker. */
export interface BreakerOptions {
  /** Number of consecutive failures that opens the breaker. Failures of concurrent calls count as one. */
  readonly failureThreshold: number;
  /** Minimum time between the opening of the breaker and a probe, and between a failed probe and the next one. */
  readonly resetTimeoutMs: number;
  /** Calls the dependency while the breaker is open. Must resolve only if the dependency is available again. */
  readonly probe: () => Promise<unknown>;
  /** Returns milliseconds since an arbitrary fixed time. */
  readonly now: () => number;
  /** Called once per outage, with the error that opened the breaker. */
  readonly onOpen: (error: unknown) => void;
  readonly onClose: () => void;
}

/** Runs a call, or rejects immediately while the breaker is open. */
export type Breaker = <T>(call: () => Promise<T>) => Promise<T>;

/**
 * Creates a circuit breaker. While the breaker is open, calls reject immediately instead of waiting for a timeout. A rejected
 * call also starts a probe in the background if `resetTimeoutMs` has passed and no probe is running. No call waits for a probe.
 *
 * Failures of concurrent calls count as one, because on a busy machine many calls to a healthy dependency can time out
 * together.
 */
export function circuitBreaker(options: BreakerOptions): Breaker {
  const { failureThreshold, resetTimeoutMs, probe, now, onOpen, onClose } = options;
  let consecutiveFailures = 0;
  let lastFailureAt = Number.NEGATIVE_INFINITY;
  /** Undefined if the breaker is closed. */
  let openSince: number | undefined;
  let isProbing = false;

  const recordFailure = (startedAt: number, error: unknown) => {
    // If concurrent calls fail together, only the first failure counts. The others started before this failure.
    if (openSince !== undefined || startedAt < lastFailureAt) return;
    lastFailureAt = now();
    consecutiveFailures += 1;
    if (consecutiveFailures < failureThreshold) return;
    openSince = lastFailureAt;
    onOpen(error);
  };

  const runProbe = async () => {
    isProbing = true;
    try {
      await probe();
      openSince = undefined;
      consecutiveFailures = 0;
      onClose();
    } catch {
      openSince = now();
    }
    isProbing = false;
  };

  return async (call) => {
    const startedAt = now();
    if (openSince !== undefined) {
      if (!isProbing && startedAt - openSince >= resetTimeoutMs) void runProbe();
      throw new Error('Circuit breaker is open');
    }
    try {
      const result = await call();
      consecutiveFailures = 0;
      return result;
    } catch (error) {
      recordFailure(startedAt, error);
      throw error;
    }
  };
}

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

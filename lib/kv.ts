import { createClient, type VercelKV } from '@vercel/kv';
import { CircuitState, ConsecutiveBreaker, circuitBreaker, handleWhen } from 'cockatiel';
import { environment } from './env';
import { describeError, log } from './log';

/** How long a call ever takes; a request makes two at most. */
const TIMEOUT_MS = 500;
const FAULTS_UNTIL_OPEN = 5;
const PROBE_AFTER_MS = 1_000;

let client: VercelKV | undefined;

/**
 * This process's one KV client, made on first use. A call ends within 500 ms, is tried once, and returns strings as
 * they were stored: by default the client retries for minutes and turns "123" into a number.
 */
function kv(): VercelKV {
  client ??= createClient({
    url: environment().KV_REST_API_URL,
    token: environment().KV_REST_API_TOKEN,
    automaticDeserialization: false,
    retry: { retries: 0 },
    signal: () => AbortSignal.timeout(TIMEOUT_MS),
  });
  return client;
}

/** A call to the KV store failed, or was not made because the store has been failing. */
class KvFault extends Error {
  constructor(
    readonly startedAt: number,
    cause: unknown,
  ) {
    super('KV store fault', { cause });
    this.name = 'KvFault';
  }
}

let lastFaultAt = 0;

/**
 * Faults of calls that were under way together count once: a busy machine times out a whole burst of calls to a
 * healthy store, and that is no outage.
 */
const breaker = circuitBreaker(
  handleWhen((error) => {
    if (!(error instanceof KvFault) || error.startedAt < lastFaultAt) return false;
    lastFaultAt = performance.now();
    return true;
  }),
  { halfOpenAfter: PROBE_AFTER_MS, breaker: new ConsecutiveBreaker(FAULTS_UNTIL_OPEN) },
);

let outage = false;
breaker.onBreak((reason) => {
  if (!outage)
    log.warn({ error: 'error' in reason ? describeError(reason.error.cause) : undefined }, 'cache skipped');
  outage = true;
});
breaker.onReset(() => {
  outage = false;
  log.info('cache in use again');
});

async function call<T>(command: (kv: VercelKV) => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  try {
    return await command(kv());
  } catch (error) {
    throw new KvFault(startedAt, error);
  }
}

let probing = false;

/** While the breaker is open, one call at a time asks the store whether it is back; no request waits for it. */
async function probe(): Promise<void> {
  if (probing) return;
  probing = true;
  await breaker.execute(() => call((store) => store.ping())).catch(() => undefined);
  probing = false;
}

/**
 * Runs a command against the KV store and ends within 500 ms; throws a KvFault and nothing else.
 *
 * After five faults in a row the store is not called any more and the fault comes at once; a background probe, at
 * most one a second and only while there are requests, ends that. Safe under any concurrency.
 */
export async function withKv<T>(command: (kv: VercelKV) => Promise<T>): Promise<T> {
  if (breaker.state === CircuitState.Closed) return breaker.execute(() => call(command));
  void probe();
  throw new KvFault(performance.now(), 'skipped');
}

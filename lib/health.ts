import type { NotReady, Ready } from './api/schemas';
import { isShuttingDown } from './concurrency/shutdown';
import { singleFlight } from './concurrency/single-flight';
import { withTimeout } from './concurrency/with-timeout';
import { describeError } from './errors/describe-error';
import { log } from './log';
import { pingDatabase } from './storage/database';
import { withKv } from './storage/kv';

/** Whether requests should be sent to this process, in words that tell a stranger nothing. */
export type Readiness = Ready | NotReady;

const OK: Readiness = { status: 'ok' };
const DEGRADED: Readiness = { status: 'degraded' };
const NO_DATABASE: Readiness = { errors: { database: 'unavailable' } };
const STOPPING: Readiness = { errors: { process: 'stopping' } };

/** How long the database may take, and how long its answer is told again. */
const BOUND_MS = 2_000;
const TOLD_AGAIN_MS = 1_000;

/** One at a time, also one that nobody waits for any more: an outage holds one connection, not all. */
const sharedDatabase = singleFlight(() => pingDatabase(BOUND_MS));

let known: { readonly readiness: Readiness; readonly at: number } | undefined;

const ask = singleFlight(async () => {
  const cache = withKv((kv) => kv.ping()).then(
    () => OK,
    () => DEGRADED,
  );
  const wasOut = known?.readiness === NO_DATABASE;
  let readiness: Readiness = NO_DATABASE;
  try {
    await withTimeout(BOUND_MS, sharedDatabase('database'));
    readiness = await cache;
    if (wasOut) log.info('ready again');
  } catch (error) {
    // Probes have no lines of their own: these two tell of an outage.
    if (!wasOut) log.warn({ error: describeError(error) }, 'not ready');
  }
  known = { readiness, at: performance.now() };
  return readiness;
});

/**
 * Says whether requests should be sent to this process; never throws.
 *
 * The database has 2 s to answer, the cache what it has for any call. However many ask, each is asked once a second at
 * most: an answer is told for a second, be it a failure, and those who come while it is being found out wait for the same.
 */
export async function readiness(): Promise<Readiness> {
  if (isShuttingDown()) return STOPPING;
  if (known && performance.now() - known.at < TOLD_AGAIN_MS) return known.readiness;
  return (await ask('readiness')).result;
}

import type { NotReady, Ready } from './api/schemas';
import { describeError } from './base/errors';
import { log } from './base/log';
import { isShuttingDown } from './base/shutdown';
import { singleFlight, withTimeout } from './core/async';
import { pingDatabase } from './storage/database';
import { withKv } from './storage/kv';

/** States whether a load balancer should send requests to this process. Contains no internal details. */
export type Readiness = Ready | NotReady;

const OK: Readiness = { status: 'ok' };
const DEGRADED: Readiness = { status: 'degraded' };
const NO_DATABASE: Readiness = { errors: { database: 'unavailable' } };
const STOPPING: Readiness = { errors: { process: 'stopping' } };

const DATABASE_TIMEOUT_MS = 2_000;
const MAX_AGE_MS = 1_000;

/** A later check waits for the query in flight, so that in an outage, health checks block only one connection. */
const pings = singleFlight<void>();

let checking: Promise<Readiness> | undefined;
let latest: { readonly readiness: Readiness; readonly at: number } | undefined;

async function checkReadiness(): Promise<Readiness> {
  const cache = withKv((kv) => kv.ping()).then(
    () => OK,
    () => DEGRADED,
  );
  const wasDown = latest?.readiness === NO_DATABASE;
  let result: Readiness = NO_DATABASE;
  try {
    await withTimeout(
      DATABASE_TIMEOUT_MS,
      pings('', () => pingDatabase(DATABASE_TIMEOUT_MS)),
    );
    result = await cache;
    if (wasDown) log.info('ready again');
  } catch (error) {
    // Requests for health checks are logged only at the level `debug`. Without the messages `not ready` and `ready again`, the
    // log would not show an outage.
    if (!wasDown) log.warn({ error: describeError(error) }, 'not ready');
  }
  latest = { readiness: result, at: performance.now() };
  return result;
}

/**
 * Returns whether this process can serve requests. Does not throw. The database query has a timeout of 2 s. A result is reused
 * for 1 s, even a failure, and for 2 s more while a check is in flight, which concurrent calls share. The load is therefore
 * independent of the number of health checks.
 */
export async function readiness(): Promise<Readiness> {
  if (isShuttingDown()) return STOPPING;
  const maxAge = checking !== undefined ? MAX_AGE_MS + DATABASE_TIMEOUT_MS : MAX_AGE_MS;
  if (latest && performance.now() - latest.at < maxAge) return latest.readiness;
  checking ??= checkReadiness().finally(() => {
    checking = undefined;
  });
  return checking;
}

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { retry, TransientError } from '../concurrency/retry';
import { isLoopback } from '../env';
import { withKv } from '../storage/kv';
import {
  type CheckResult,
  check,
  errorCode,
  failure,
  medianDuration,
  type NamedCheck,
  ok,
  settle,
  skipped,
  THREE_ATTEMPTS,
  warning,
} from './check';
import { ENV_GROUPS, tryParse } from './variables';

/** Lifetime of the cache entry that the doctor (`npm run doctor`) writes as a test, if the doctor cannot delete the entry. */
const KEY_TTL_SECONDS = 60;
const ROUNDS = 5;

/** Maximum time until a replica returns a written value. */
const REPLICATION_MS = 2_000;
/** Pause between two reads of the written value. */
const READ_PAUSE_MS = 100;

/** Error codes that a Redis store returns if the token does not permit a command. */
const NOT_PERMITTED = /NOPERM|READONLY|NOAUTH/;

/**
 * Matches the error of a store that has used up the commands, the bandwidth or the storage of its plan.
 * Source: the pages max_requests_limit, max_daily_request_limit and db_capacity_quota_exceeded below
 * https://upstash.com/docs/redis/troubleshooting/, read in November 2026.
 */
const QUOTA_EXCEEDED = /\b(?:limit|quota) exceeded/i;

/** Error message of lib/storage/kv.ts after its timeout. */
const TIMED_OUT = 'KV store did not respond';

const INVALID_VARIABLES = 'KV_REST_API_URL or KV_REST_API_TOKEN is invalid';
const COPY_BOTH =
  'Copy both KV_REST_API_URL and KV_REST_API_TOKEN from the page of one store at its provider';

/** Returns the text of a store's error. The text may contain cached values, so callers must print only its error code. */
function storeErrorOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function explain(thrown: unknown): CheckResult {
  const error = thrown instanceof TransientError ? thrown.cause : thrown;
  const storeError = storeErrorOf(error);
  if (QUOTA_EXCEEDED.test(storeError))
    return failure(
      "the quota of the store's plan is used up",
      'Choose a larger plan at the provider of the store. Until then, every request uses the database',
    );
  if (error instanceof Error && error.name === 'UpstashError')
    return failure(
      `the store returns an error (${/^[A-Z]+\b/.exec(storeError)?.[0] ?? 'without a code'})`,
      "Look up the error on the store's page at its provider",
    );
  const code = errorCode(error);
  if (code === 'HTTP_401' || code === 'HTTP_403')
    return failure('the store rejects KV_REST_API_TOKEN', COPY_BOTH);
  if (code === TIMED_OUT)
    return failure(
      'the store does not respond within 500 ms, the timeout of a cache call in the service',
      'Choose a store in the region of the functions. Until then, every request uses the database',
    );
  if (code === 'ENOTFOUND')
    return failure(
      'the host of KV_REST_API_URL does not exist (ENOTFOUND)',
      'Correct KV_REST_API_URL. If the provider archived or deleted an unused store, create a new store and set KV_REST_API_URL and KV_REST_API_TOKEN',
    );
  if (/^E[A-Z_]+$/.test(code))
    return failure(
      `cannot connect to the store (${code})`,
      'Check that the store is running and that KV_REST_API_URL is its URL',
    );
  const [, status] = /^HTTP_(\d+)$/.exec(code) ?? [];
  return failure(
    status === undefined
      ? 'the response at KV_REST_API_URL is not that of a KV store'
      : `the store responds with status ${status}`,
    COPY_BOTH,
  );
}

/** Runs an idempotent command up to three times. The first attempt may time out, because it also opens a connection. */
function withKvRetry<T>(command: Parameters<typeof withKv<T>>[0]): Promise<T> {
  return retry(THREE_ATTEMPTS, () =>
    withKv(command).catch((cause: unknown) => {
      throw new TransientError('The store did not run the command', undefined, { cause });
    }),
  );
}

/** Writes a key, reads it and deletes it. */
async function checkWrite(): Promise<CheckResult> {
  const key = `auth:doctor:${randomUUID()}`;
  const value = randomUUID();
  const canRead = async () => (await withKvRetry((kv) => kv.get(key))) === value;
  try {
    await withKvRetry((kv) => kv.set(key, value, { ex: KEY_TTL_SECONDS }));
    if (await canRead()) return ok('a written value can be read');
    const deadline = performance.now() + REPLICATION_MS;
    while (performance.now() < deadline) {
      await pause(READ_PAUSE_MS);
      if (await canRead())
        return warning(
          'a written value cannot be read immediately: the store has read regions',
          'Remove the read regions if all functions run in one region. Otherwise accept that cached entries arrive late',
        );
    }
    return failure(
      `a written value cannot be read within ${REPLICATION_MS / 1_000} s`,
      'Use a store without read regions. If this store has no read regions, use a different store',
    );
  } catch (error) {
    if (NOT_PERMITTED.test(storeErrorOf(error)))
      return failure(
        'KV_REST_API_TOKEN is a read-only token',
        'Set KV_REST_API_TOKEN to the token that has write access',
      );
    return explain(error);
  } finally {
    await withKv((kv) => kv.del(key)).catch(() => undefined);
  }
}

async function checkLatency(): Promise<CheckResult> {
  const milliseconds = await medianDuration(ROUNDS, () => withKvRetry((kv) => kv.ping()));
  return ok(`${milliseconds} ms per round trip from this machine, median of ${ROUNDS}`);
}

function checkTransport(url: string): CheckResult {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || isLoopback(hostname)
    ? ok(protocol === 'https:' ? 'over TLS' : 'on this machine')
    : warning('the token is sent unencrypted', 'Set KV_REST_API_URL to an https:// URL');
}

/** Checks the cache with the KV client that the service uses. */
export async function checkCache(): Promise<NamedCheck[]> {
  const variables = tryParse(ENV_GROUPS.cache);
  const connected = variables
    ? await settle(() => withKvRetry((kv) => kv.ping()), explain)
    : { failed: skipped(INVALID_VARIABLES) };
  const responds = 'value' in connected;
  const notConnected = skipped('the first check of the cache did not succeed');
  return [
    await check('cache', () => (responds ? ok('responds') : connected.failed)),
    await check('cache write', () => (responds ? checkWrite() : notConnected)),
    await check('cache latency', () => (responds ? checkLatency().catch(explain) : notConnected)),
    await check('cache transport', () =>
      variables ? checkTransport(variables.KV_REST_API_URL) : skipped(INVALID_VARIABLES),
    ),
  ];
}

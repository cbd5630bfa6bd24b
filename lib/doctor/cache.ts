import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { isLoopback } from '../env';
import { withKv } from '../storage/kv';
import {
  attempt,
  check,
  codeOf,
  type Examined,
  type Finding,
  failure,
  median,
  ok,
  skipped,
  warning,
} from './check';
import { PARTS, valid } from './variables';

const SECONDS = 60;
const TRIES = 3;
const ROUNDS = 5;

/** Maximum time for a write to reach the replica that serves reads. */
const REPLICATION_MS = 2_000;
const READ_AGAIN_MS = 100;

/** The store's word for a token that may not do what was asked. */
const NOT_PERMITTED = /NOPERM|READONLY|NOAUTH/;

/**
 * Errors of a store whose plan allows no more commands, bandwidth or data.
 * Source: https://upstash.com/docs/redis/troubleshooting/max_requests_limit, max_daily_request_limit and
 * db_capacity_quota_exceeded, read in November 2026.
 */
const QUOTA_EXCEEDED = /\b(?:limit|quota) exceeded/i;

const TOKEN = "Take KV_REST_API_URL and KV_REST_API_TOKEN from the same store's page";

/** Returns the store's own error text, which is about one command or the whole request. It may quote values: never print it. */
function storeErrorOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function explain(error: unknown): Finding {
  const storeError = storeErrorOf(error);
  if (QUOTA_EXCEEDED.test(storeError))
    return failure(
      "the quota of the store's plan is used up",
      'Choose a larger plan at the provider of the store; until then requests are answered from the database',
    );
  if (error instanceof Error && error.name === 'UpstashError')
    return failure(
      `the store returns an error (${/^[A-Z]+\b/.exec(storeError)?.[0] ?? 'without a code'})`,
      "Look up the error on the store's page at its provider",
    );
  const code = codeOf(error);
  if (code === 'HTTP_401' || code === 'HTTP_403')
    return failure('the store refuses KV_REST_API_TOKEN', TOKEN);
  if (code === 'KV store did not respond')
    return failure(
      'does not answer within 500 ms, which is how long the service waits',
      'Choose a store in the region of the functions; until then every request is answered from the database',
    );
  if (code === 'ENOTFOUND')
    return failure(
      'the host of KV_REST_API_URL does not exist (ENOTFOUND)',
      'Correct KV_REST_API_URL; if the provider archived or deleted an unused store, make a new one and set both variables',
    );
  if (/^E[A-Z_]+$/.test(code))
    return failure(
      `out of reach (${code})`,
      'See that the store is there, and that KV_REST_API_URL names it',
    );
  const [, status] = /^HTTP_(\d+)$/.exec(code) ?? [];
  return failure(
    status === undefined
      ? 'something else than a KV store answers'
      : `answers with status ${status}: a KV store out of order, or none`,
    TOKEN,
  );
}

/** A command that may be given again. From afar the first one opens a slow connection: the store has three tries. */
async function patientlyWithKv<T>(command: Parameters<typeof withKv<T>>[0]): Promise<T> {
  for (let attempted = 1; ; attempted += 1) {
    try {
      return await withKv(command);
    } catch (error) {
      if (attempted === TRIES) throw error;
    }
  }
}

/** Writes a key of its own and reads it back. It deletes the key, which would also expire. */
async function writeAndRead(): Promise<Finding> {
  const key = `auth:doctor:${randomUUID()}`;
  const value = randomUUID();
  const isReadBack = async () => (await patientlyWithKv((kv) => kv.get(key))) === value;
  try {
    await patientlyWithKv((kv) => kv.set(key, value, { ex: SECONDS }));
    if (await isReadBack()) return ok('what is written is read back');
    const deadline = performance.now() + REPLICATION_MS;
    while (performance.now() < deadline) {
      await pause(READ_AGAIN_MS);
      if (await isReadBack())
        return warning(
          'what is written is not read back at once: the store has read regions',
          'Remove the read regions if all functions run in one region; else accept that a cached entry arrives late',
        );
    }
    return failure(
      `what is written is not read back within ${REPLICATION_MS / 1_000} s`,
      'Use one store without replicas that lag, or another one',
    );
  } catch (error) {
    if (error instanceof Error && NOT_PERMITTED.test(error.message))
      return failure(
        'KV_REST_API_TOKEN is a read-only token',
        'Set KV_REST_API_TOKEN to the token that may write, not to the read-only one',
      );
    return explain(error);
  } finally {
    await withKv((kv) => kv.del(key)).catch(() => undefined);
  }
}

async function latency(): Promise<Finding> {
  const milliseconds = await median(ROUNDS, () => patientlyWithKv((kv) => kv.ping()));
  return ok(`${milliseconds} ms a round trip from here, the median of ${ROUNDS}`);
}

function transport(url: string): Finding {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || isLoopback(hostname)
    ? ok(protocol === 'https:' ? 'over TLS' : 'on this machine')
    : warning('the token travels in plain text', 'Make KV_REST_API_URL an https:// address');
}

/** The cache, by the service's own client. */
export async function examineCache(): Promise<Examined[]> {
  const variables = valid(PARTS.cache);
  const reached = variables
    ? await attempt(() => patientlyWithKv((kv) => kv.ping()), explain)
    : { fault: skipped('KV_REST_API_URL or KV_REST_API_TOKEN is not valid') };
  const answers = 'value' in reached;
  const beyond = skipped('the cache does not answer');
  return [
    await check('cache', () => (answers ? ok('answers') : reached.fault)),
    await check('cache write', () => (answers ? writeAndRead() : beyond)),
    await check('cache latency', () => (answers ? latency().catch(explain) : beyond)),
    await check('cache transport', () =>
      variables ? transport(variables.KV_REST_API_URL) : skipped('KV_REST_API_URL is not valid'),
    ),
  ];
}

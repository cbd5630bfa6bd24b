import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type CheckResult, check, fail, validVariables } from '../base/check';
import { errorCode } from '../base/errors';
import { createKv, KvAddress } from '../storage/kv';

const TIMEOUT_MS = 5_000;
/** Lifetime of the test entry, if the doctor cannot delete it. */
const TTL_SECONDS = 60;
/** Number of reads of the written value, and the pause between them. A replica may return the value late. */
const READS = 5;
const READ_PAUSE_MS = 400;

const COPY_BOTH =
  'Copy both KV_REST_API_URL and KV_REST_API_TOKEN from the page of one store at its provider';
/**
 * Matches the error of a store that has used up its plan. Source: the pages max_requests_limit, max_daily_request_limit and
 * db_capacity_quota_exceeded below https://upstash.com/docs/redis/troubleshooting/, read in November 2026.
 */
const QUOTA_EXCEEDED = /\b(?:limit|quota) exceeded/i;

/**
 * Explains an error of the store or of the transport. The text of an error of the store may contain cached values, so the problem
 * contains only its first word.
 */
function explain(error: Error): never {
  const { message, cause } = error;
  const text = message + cause;
  if (QUOTA_EXCEEDED.test(text))
    fail("the quota of the store's plan is used up", 'Choose a larger plan at the provider of the store');
  if (/^(?:NOPERM|READONLY|NOAUTH)/.test(message))
    fail('KV_REST_API_TOKEN is a read-only token', 'Set it to the token that has write access');
  if (error.name === 'UpstashError') {
    const code = /^[A-Z]+\b/.exec(message)?.[0] ?? 'without a code';
    fail(`the store returns an error (${code})`, "Look it up on the store's page at its provider");
  }
  const code = errorCode(error);
  if (/^HTTP_40[13]$/.test(code)) fail('the store rejects KV_REST_API_TOKEN', COPY_BOTH);
  if (/^HTTP_|^SyntaxError$/.test(code)) fail(`the response is not that of a KV store (${code})`, COPY_BOTH);
  fail(
    `cannot connect to the store (${code})`,
    'Check that KV_REST_API_URL is the URL of a running store. Providers archive unused stores',
  );
}

async function checkWrite(): Promise<string> {
  const kv = createKv(validVariables(KvAddress), TIMEOUT_MS);
  const [key, value] = [`auth:doctor:${randomUUID()}`, JSON.stringify({ id: randomUUID() })];
  let isExact = true;
  try {
    const options = { ex: TTL_SECONDS, nx: true } as const;
    // These commands are one pipeline. The last one is invalid for a text.
    const [written, repeated, invalid] = await Promise.allSettled([
      kv.set(key, value, options),
      kv.set(key, 'another value', options),
      kv.lpush(key, 'element'),
    ]);
    if (written.status === 'rejected') throw written.reason;
    isExact = repeated.status === 'fulfilled' && repeated.value === null && invalid.status === 'rejected';
    for (let read = 0; isExact && read < READS; read += 1) {
      if ((await kv.get(key)) === value) return 'the store keeps a written value';
      await pause(READ_PAUSE_MS);
    }
  } catch (error) {
    explain(error instanceof Error ? error : new Error('unknown'));
  } finally {
    await kv.del(key).catch(() => undefined);
  }
  if (!isExact)
    fail('the store ignores NX, or the error of a command', 'Use Upstash, or a store with the same REST API');
  fail(
    `a written value cannot be read within ${(READS * READ_PAUSE_MS) / 1_000} s`,
    'Use a store that keeps entries and has no read regions (replicas)',
  );
}

/** Checks that the store stores and returns a value. Writes one key and deletes it. */
export const checkCache = (): Promise<CheckResult> => check('cache', checkWrite);

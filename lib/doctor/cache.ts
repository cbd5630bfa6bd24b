import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import * as z from 'zod/mini';
import { variables } from '../env';
import { type CheckResult, check, errorCode, fail } from './check';
import { validVariables } from './variables';

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

const Reply = z.object({ result: z.optional(z.unknown()), error: z.optional(z.string()) });

/** Converts an error of the store. Its text may contain cached values, so the problem contains only its first word. */
function explain(error: string): never {
  if (QUOTA_EXCEEDED.test(error))
    fail("the quota of the store's plan is used up", 'Choose a larger plan at the provider of the store');
  if (/^(?:NOPERM|READONLY|NOAUTH)/.test(error))
    fail('KV_REST_API_TOKEN is a read-only token', 'Set it to the token that has write access');
  const code = /^[A-Z]+\b/.exec(error)?.[0] ?? 'without a code';
  fail(`the store returns an error (${code})`, "Look it up on the store's page at its provider");
}

const Store = z.pick(variables, { KV_REST_API_URL: true, KV_REST_API_TOKEN: true });

/** Runs one command over the REST API of the store. Fails if the store does not return a result. */
async function run(...command: readonly string[]): Promise<unknown> {
  const { KV_REST_API_URL, KV_REST_API_TOKEN } = validVariables(Store);
  const response = await fetch(`${KV_REST_API_URL.replace(/\/$/, '')}/pipeline`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KV_REST_API_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify([command]),
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: unknown) =>
    fail(
      `cannot connect to the store (${errorCode(error)})`,
      'Check that KV_REST_API_URL is the URL of a running store. Providers archive unused stores',
    ),
  );
  const { status } = response;
  if (status === 401 || status === 403) fail('the store rejects KV_REST_API_TOKEN', COPY_BOTH);
  // The store responds with an array of results, or with an object if it rejects the whole request.
  const [body] = [await response.json().catch(() => undefined)].flat();
  const reply = Reply.safeParse(body).data;
  if (reply?.error !== undefined) explain(reply.error);
  if (reply?.result === undefined) fail(`the response is not that of a KV store (${status})`, COPY_BOTH);
  return reply.result;
}

async function checkWrite(): Promise<string> {
  const [key, value] = [`auth:doctor:${randomUUID()}`, randomUUID()];
  await run('SET', key, value, 'EX', String(TTL_SECONDS));
  try {
    for (let read = 0; read < READS; read += 1) {
      if ((await run('GET', key)) === value) return 'a written value can be read';
      await pause(READ_PAUSE_MS);
    }
  } finally {
    await run('DEL', key).catch(() => undefined);
  }
  fail(
    `a written value cannot be read within ${(READS * READ_PAUSE_MS) / 1_000} s`,
    'Use a store that keeps entries and has no read regions (replicas)',
  );
}

/** Checks that the store stores and returns a value. Writes one key and deletes it. */
export const checkCache = (): Promise<CheckResult> => check('cache', checkWrite);

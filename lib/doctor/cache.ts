import { randomUUID } from 'node:crypto';
import { isLoopback } from '../env';
import { withKv } from '../kv';
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

/** The store's word for a token that may not do what was asked. */
const NOT_PERMITTED = /NOPERM|READONLY|NOAUTH/;

const TOKEN = "Take KV_REST_API_URL and KV_REST_API_TOKEN from the same store's page";

function explain(error: unknown): Finding {
  const code = codeOf(error);
  if (code === 'HTTP_401' || code === 'HTTP_403')
    return failure('the store refuses KV_REST_API_TOKEN', TOKEN);
  if (code === 'KV store does not answer')
    return failure(
      'does not answer within 500 ms, which is how long the service waits',
      'Choose a store in the region of the functions; until then every request is answered from the database',
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

/** A key of its own, which is deleted again, and would go by itself. */
async function writeAndRead(): Promise<Finding> {
  const key = `auth:doctor:${randomUUID()}`;
  const value = randomUUID();
  try {
    await patientlyWithKv((kv) => kv.set(key, value, { ex: SECONDS }));
    const read = await patientlyWithKv((kv) => kv.get(key));
    return read === value
      ? ok('what is written is read back')
      : failure(
          'what is written is not read back',
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

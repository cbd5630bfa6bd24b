import { createHmac, randomBytes } from 'node:crypto';
import type { Clock } from './clock';
import type { Delivery, DeliveryAttempt } from './data';

/** Where events are delivered, and the secrets that sign them: two while a secret is being rotated. */
export interface WebhookEndpoint {
  readonly url: string;
  readonly secrets: readonly string[];
}

const ANSWER_BOUND_MILLISECONDS = 15_000;
const RECORDED_ANSWER_BYTES = 1024;

/** Tries a delivery once, within 15 seconds. Never throws: what prevented an answer is the outcome. */
export async function attemptDelivery(
  delivery: Delivery,
  endpoint: WebhookEndpoint,
  how: { readonly clock: Clock; readonly signatureBroken: boolean; readonly stop: AbortSignal },
): Promise<DeliveryAttempt> {
  const { clock } = how;
  const at = clock.now();
  const headers = signedHeaders(delivery, endpoint.secrets, at, how.signatureBroken);
  const outcome = await post(endpoint.url, headers, delivery.body, clock, how.stop);
  return { at, durationMilliseconds: clock.now() - at, ...outcome };
}

/**
 * The headers of one attempt, by the Standard Webhooks scheme under its sender's names: one signature for
 * each secret, over the id, the time of this attempt in seconds and the exact bytes of the body.
 */
function signedHeaders(delivery: Delivery, secrets: readonly string[], at: number, broken: boolean) {
  const timestamp = Math.floor(at / 1000);
  const content = `${delivery.id}.${timestamp}.${delivery.body}`;
  const signatures = secrets.map((secret) => {
    const key = broken ? randomBytes(32) : Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
  });
  return {
    'content-type': 'application/json',
    'user-agent': 'Svix-Webhooks/1.0 (identity provider stand-in)',
    'svix-id': delivery.id,
    'svix-timestamp': String(timestamp),
    'svix-signature': signatures.join(' '),
  };
}

/** Follows no redirect: to the sender a 3xx is a failure. */
async function post(
  url: string,
  headers: Record<string, string>,
  body: string,
  clock: Clock,
  stop: AbortSignal,
): Promise<Pick<DeliveryAttempt, 'status' | 'answer'>> {
  const bound = new AbortController();
  const cancel = clock.after(ANSWER_BOUND_MILLISECONDS, () =>
    bound.abort(new Error('No answer within 15 seconds')),
  );
  try {
    const signal = AbortSignal.any([bound.signal, stop]);
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
    return { status: response.status, answer: await startOf(response) };
  } catch (error) {
    return { status: null, answer: reasonOf(error) };
  } finally {
    cancel();
  }
}

async function startOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= RECORDED_ANSWER_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, RECORDED_ANSWER_BYTES).toString();
}

/** Node hides why a connection failed in the cause of "fetch failed". */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.cause.name : error.message;
}

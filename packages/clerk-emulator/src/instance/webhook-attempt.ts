import { createHmac, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { messageOf } from '../errors';
import type { Clock } from './clock';
import { Time } from './data';

/** One attempt to deliver an event. `answer` is the start of the response body, or the error if there was no response. */
const DeliveryAttempt = z.object({
  at: Time,
  status: z.number().nullable(),
  answer: z.string(),
  durationMilliseconds: z.number(),
});
export type DeliveryAttempt = Readonly<z.infer<typeof DeliveryAttempt>>;

/** An event for the webhook endpoint. Its id and its bytes are the same in every attempt. */
export const Delivery = z.object({
  id: z.string(),
  type: z.string(),
  body: z.string(),
  /** A delivered event stays `delivered` even if a redelivery fails. */
  status: z.enum(['pending', 'delivered', 'failed']),
  attempts: z.array(DeliveryAttempt),
  /** Number of failed attempts since the event was sent or last redelivered. This number selects the next retry delay. */
  failures: z.number(),
  /** Number of successful attempts that are still to be made. */
  copies: z.number(),
  /** Time of the next attempt, or null if there is none. */
  nextTryAt: Time.nullable(),
  createdAt: Time,
});
export type Delivery = Readonly<z.infer<typeof Delivery>>;

/** URL that receives webhooks, and the secrets that sign them. While a secret is being rotated, there are two secrets. */
export interface WebhookEndpoint {
  readonly url: string;
  readonly secrets: readonly string[];
}

const RESPONSE_TIMEOUT_MS = 15_000;
const RECORDED_RESPONSE_BYTES = 1024;

/** Attempts a delivery once, with a timeout of 15 s. Never rejects. The result of a failed attempt contains the error. */
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
 * Returns the headers of one attempt: those of Standard Webhooks under the names of Svix, with a signature for each secret over
 * the id, the time of the attempt in seconds and the exact bytes of the body.
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
    'user-agent': 'Svix-Webhooks/1.0 (clerk-emulator)',
    'svix-id': delivery.id,
    'svix-timestamp': String(timestamp),
    'svix-signature': signatures.join(' '),
  };
}

/** Sends one request. Does not follow redirects, because Clerk treats a 3xx as a failure. */
async function post(
  url: string,
  headers: Record<string, string>,
  body: string,
  clock: Clock,
  stop: AbortSignal,
): Promise<Pick<DeliveryAttempt, 'status' | 'answer'>> {
  const timeout = new AbortController();
  const cancel = clock.after(RESPONSE_TIMEOUT_MS, () =>
    timeout.abort(new Error('No response within 15 seconds')),
  );
  try {
    const signal = AbortSignal.any([timeout.signal, stop]);
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
    return { status: response.status, answer: await readStart(response) };
  } catch (error) {
    // The message of a connection error of `fetch` is only "fetch failed".
    return { status: null, answer: messageOf(error instanceof Error ? (error.cause ?? error) : error) };
  } finally {
    cancel();
  }
}

async function readStart(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= RECORDED_RESPONSE_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, RECORDED_RESPONSE_BYTES).toString();
}

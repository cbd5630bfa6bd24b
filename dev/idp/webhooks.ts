import { createHmac, randomBytes } from 'node:crypto';
import type { Clock } from './clock';
import type { Delivery, DeliveryAttempt } from './data';
import { newId } from './ids';
import type { Store } from './store';

/** Where events are delivered, and the secrets that sign them: two while a secret is being rotated. */
export interface WebhookEndpoint {
  readonly url: string;
  readonly secrets: readonly string[];
}

/** The sender of signed events: what the provider does with an endpoint of an application. */
export interface Webhooks {
  /** Records an event and delivers it, at once unless the endpoint is paused or missing. */
  send(type: string, data: Record<string, unknown>): Delivery;
  /** Every delivery that is remembered, oldest first. */
  list(): Delivery[];
  /** Sends a delivery again, now, with a retry schedule of its own. Throws for an unknown id. */
  redeliver(id: string): Delivery;
  /** Resolves with the delivery once it is no longer pending. Rejects for an unknown id. */
  settled(id: string): Promise<Delivery>;
  /** While paused, deliveries wait; they are sent on resume. */
  pause(): void;
  resume(): void;
  readonly paused: boolean;
  /** While broken, every attempt carries a signature that does not fit. */
  breakSignature(broken: boolean): void;
  readonly signatureBroken: boolean;
  readonly endpoint: WebhookEndpoint | undefined;
  /** Moves the endpoint or changes its secrets, from the next attempt on. */
  setEndpoint(endpoint: WebhookEndpoint | undefined): void;
  /** Gives up attempts under way and lets no other begin. What is pending goes on after a restart. */
  stop(): Promise<void>;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The waits between the eight attempts of the provider's sender, 27 h 35 min in all. */
const RETRY_DELAYS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR] as const;
const ANSWER_BOUND = 15 * SECOND;
const RECORDED_ANSWER_BYTES = 1024;
const CONCURRENT_ATTEMPTS = 20;
const REMEMBERED_DELIVERIES = 1000;

/** Starts the sender; deliveries that the store holds as pending go on where they were. */
export function startWebhooks(options: {
  readonly store: Store;
  readonly clock: Clock;
  readonly endpoint: WebhookEndpoint | undefined;
  readonly retryScale: number;
  readonly instanceId: string;
}): Webhooks {
  const { store, clock } = options;
  const { deliveries } = store;
  let endpoint = options.endpoint;
  let paused = false;
  let signatureBroken = false;
  let stopped = false;
  const timers = new Map<string, () => void>();
  const waiting = new Set<string>();
  const underWay = new Map<string, Promise<void>>();
  const stopSignal = new AbortController();

  const known = (id: string): Delivery => {
    const delivery = deliveries.get(id);
    if (delivery === undefined) throw new Error(`There is no delivery ${id}`);
    return delivery;
  };

  const cancelTimer = (id: string) => {
    timers.get(id)?.();
    timers.delete(id);
  };

  const schedule = (delivery: Delivery, delay: number) => {
    cancelTimer(delivery.id);
    const due = () => {
      timers.delete(delivery.id);
      waiting.add(delivery.id);
      startWaiting();
    };
    if (delay <= 0) due();
    else timers.set(delivery.id, clock.after(delay, due));
  };

  const startWaiting = () => {
    if (paused || stopped || endpoint === undefined) return;
    for (const id of waiting) {
      if (underWay.size >= CONCURRENT_ATTEMPTS) return;
      if (underWay.has(id)) continue;
      waiting.delete(id);
      const delivery = deliveries.get(id);
      if (delivery === undefined) continue;
      const attempt = deliver(delivery, endpoint).finally(() => {
        underWay.delete(id);
        startWaiting();
      });
      underWay.set(id, attempt);
    }
  };

  const deliver = async (delivery: Delivery, to: WebhookEndpoint) => {
    const at = clock.now();
    const headers = signedHeaders(delivery, to.secrets, at, signatureBroken);
    const outcome = await post(to.url, headers, delivery.body, clock, stopSignal.signal);
    const current = deliveries.get(delivery.id);
    if (stopped || current === undefined) return;
    record(current, { at, durationMilliseconds: clock.now() - at, ...outcome });
  };

  const record = (delivery: Delivery, attempt: DeliveryAttempt) => {
    const attempts = [...delivery.attempts, attempt];
    if (attempt.status !== null && attempt.status >= 200 && attempt.status < 300) {
      cancelTimer(delivery.id);
      deliveries.put({ ...delivery, attempts, status: 'delivered', nextTryAt: null });
      return;
    }
    const failures = delivery.failures + 1;
    const delay = RETRY_DELAYS[delivery.failures];
    if (delay === undefined) {
      deliveries.put({ ...delivery, attempts, failures, status: 'failed', nextTryAt: null });
      return;
    }
    const scaled = delay * options.retryScale;
    const nextTryAt = clock.now() + scaled;
    schedule(deliveries.put({ ...delivery, attempts, failures, nextTryAt }), scaled);
  };

  const forgetOldest = () => {
    if (deliveries.size() <= REMEMBERED_DELIVERIES) return;
    const oldest = deliveries.find((delivery) => delivery.status !== 'pending');
    if (oldest !== undefined) deliveries.delete(oldest.id);
  };

  for (const delivery of deliveries.all()) {
    if (delivery.status === 'pending') schedule(delivery, (delivery.nextTryAt ?? 0) - clock.now());
  }

  return {
    send(type, data) {
      const now = clock.now();
      const body = JSON.stringify({
        data,
        event_attributes: { http_request: { client_ip: '127.0.0.1', user_agent: 'identity-provider' } },
        instance_id: options.instanceId,
        object: 'event',
        timestamp: now,
        type,
      });
      const delivery = deliveries.put({
        id: newId('msg'),
        type,
        body,
        status: 'pending',
        attempts: [],
        failures: 0,
        nextTryAt: now,
        createdAt: now,
      });
      forgetOldest();
      schedule(delivery, 0);
      return delivery;
    },
    list: deliveries.all,
    redeliver(id) {
      const delivery = deliveries.put({
        ...known(id),
        status: 'pending',
        failures: 0,
        nextTryAt: clock.now(),
      });
      schedule(delivery, 0);
      return delivery;
    },
    settled(id) {
      return new Promise((resolve, reject) => {
        const look = () => {
          const delivery = deliveries.get(id);
          if (delivery?.status === 'pending') return;
          unsubscribe();
          if (delivery === undefined) reject(new Error(`There is no delivery ${id}`));
          else resolve(delivery);
        };
        const unsubscribe = store.onChange(look);
        look();
      });
    },
    pause() {
      paused = true;
    },
    resume() {
      paused = false;
      startWaiting();
    },
    get paused() {
      return paused;
    },
    breakSignature(broken) {
      signatureBroken = broken;
    },
    get signatureBroken() {
      return signatureBroken;
    },
    get endpoint() {
      return endpoint;
    },
    setEndpoint(next) {
      endpoint = next;
      startWaiting();
    },
    async stop() {
      stopped = true;
      for (const cancel of timers.values()) cancel();
      stopSignal.abort();
      await Promise.all(underWay.values());
    },
  };
}

/**
 * The headers of one attempt, by the Standard Webhooks scheme under its sender's names: one signature for
 * each secret, over the id, the time of this attempt in seconds and the exact bytes of the body.
 */
function signedHeaders(delivery: Delivery, secrets: readonly string[], at: number, broken: boolean) {
  const timestamp = Math.floor(at / SECOND);
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

/** Posts once. Follows no redirect; never throws: what prevented an answer is the outcome. */
async function post(
  url: string,
  headers: Record<string, string>,
  body: string,
  clock: Clock,
  stop: AbortSignal,
): Promise<Pick<DeliveryAttempt, 'status' | 'answer'>> {
  const bound = new AbortController();
  const cancel = clock.after(ANSWER_BOUND, () => bound.abort(new Error('No answer within 15 seconds')));
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

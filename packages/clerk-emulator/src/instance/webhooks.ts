import type { Clock } from './clock';
import type { Delivery, DeliveryAttempt } from './data';
import { newId } from './ids';
import type { Store } from './store';
import { attemptDelivery, type WebhookEndpoint } from './webhook-attempt';

/** Settings that make deliveries fail, late or repeated, as in production. */
export interface DeliverySettings {
  /** Whether every attempt has an invalid signature. */
  readonly signatureBroken: boolean;
  /** Time between an event and its first attempt. */
  readonly delaySeconds: number;
  /** Number of successful deliveries of an event. All have the same id. */
  readonly copies: number;
}

/**
 * The webhook sender. It signs events and delivers them to the endpoint of an application. In these comments, a delivery is
 * pending while an attempt is scheduled or in flight. The `status` of a pending delivery can also be `delivered`, because a
 * delivered event keeps this status while `redeliver` sends it again.
 */
export interface Webhooks {
  /** Stores an event and delivers it. The delivery waits while the endpoint is paused or missing. */
  send(type: string, data: Record<string, unknown>): Delivery;
  /** Returns the deliveries, oldest first. If there are more than 1000, the oldest finished ones are removed. */
  list(): Delivery[];
  /**
   * Sends a delivery again, with a new retry schedule. A delivered event stays `delivered` even if the new attempts
   * fail. Throws for an unknown id.
   */
  redeliver(id: string): Delivery;
  /** Resolves with the delivery when it is no longer pending. Rejects for an unknown or removed id. */
  settled(id: string): Promise<Delivery>;
  /** Resolves when no delivery is pending. Deliveries stay pending while the endpoint is paused or missing. */
  idle(): Promise<void>;
  /** Makes deliveries wait until `resume`. Clerk cannot pause deliveries. */
  pause(): void;
  resume(): void;
  readonly paused: boolean;
  readonly settings: DeliverySettings;
  /** Changes settings for later events and attempts. */
  configure(changes: Partial<DeliverySettings>): void;
  readonly endpoint: WebhookEndpoint | undefined;
  /** Replaces the endpoint for later attempts. Undefined removes the endpoint. */
  setEndpoint(endpoint: WebhookEndpoint | undefined): void;
  /** Aborts attempts in flight and starts no more. With a data file, pending deliveries continue after a restart. */
  stop(): Promise<void>;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Delays between Clerk's eight attempts, 27 h 35 min in total. */
const RETRY_DELAYS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR] as const;
const CONCURRENT_ATTEMPTS = 20;
const MAX_DELIVERIES = 1000;

/** Starts the sender. Pending deliveries in the store continue their retry schedule. */
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
  let settings: DeliverySettings = { signatureBroken: false, delaySeconds: 0, copies: 1 };
  let stopped = false;
  const timers = new Map<string, () => void>();
  const waiting = new Set<string>();
  const inFlight = new Map<string, Promise<void>>();
  const stopSignal = new AbortController();

  const requireDelivery = (id: string): Delivery => {
    const delivery = deliveries.get(id);
    if (delivery === undefined) throw new Error(`Unknown delivery: ${id}`);
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
      if (inFlight.size >= CONCURRENT_ATTEMPTS) return;
      if (inFlight.has(id)) continue;
      waiting.delete(id);
      const delivery = deliveries.get(id);
      if (delivery === undefined) continue;
      const attempt = deliver(delivery, endpoint).finally(() => {
        inFlight.delete(id);
        startWaiting();
      });
      inFlight.set(id, attempt);
    }
  };

  const deliver = async (delivery: Delivery, to: WebhookEndpoint) => {
    const stop = stopSignal.signal;
    const { signatureBroken } = settings;
    const attempt = await attemptDelivery(delivery, to, { clock, signatureBroken, stop });
    const current = deliveries.get(delivery.id);
    if (stopped || current === undefined) return;
    record(current, attempt);
  };

  const record = (delivery: Delivery, attempt: DeliveryAttempt) => {
    const isDelivered = attempt.status !== null && attempt.status >= 200 && attempt.status < 300;
    const wasDelivered = isDelivered || delivery.status === 'delivered';
    const attempts = [...delivery.attempts, attempt];
    if (waiting.has(delivery.id)) {
      // `redeliver()` was called during the attempt, so another attempt starts now.
      deliveries.put({ ...delivery, attempts, status: wasDelivered ? 'delivered' : 'pending' });
      return;
    }
    const delay = RETRY_DELAYS[delivery.failures];
    if (isDelivered && delivery.copies > 1) {
      const status = 'delivered';
      const copies = delivery.copies - 1;
      schedule(deliveries.put({ ...delivery, attempts, status, copies, nextTryAt: clock.now() }), 0);
      return;
    }
    const tried = {
      ...delivery,
      attempts,
      failures: delivery.failures + (isDelivered ? 0 : 1),
    };
    if (!isDelivered && delay !== undefined) {
      const wait = delay * options.retryScale;
      schedule(deliveries.put({ ...tried, nextTryAt: clock.now() + wait }), wait);
      return;
    }
    cancelTimer(delivery.id);
    deliveries.put({ ...tried, status: wasDelivered ? 'delivered' : 'failed', nextTryAt: null });
    removeOldest();
  };

  const removeOldest = () => {
    if (deliveries.size() <= MAX_DELIVERIES) return;
    const oldest = deliveries.find((delivery) => !isPending(delivery));
    if (oldest !== undefined) deliveries.delete(oldest.id);
  };

  const waitUntil = (condition: () => boolean) =>
    new Promise<void>((resolve) => {
      const check = () => {
        if (!condition()) return;
        unsubscribe();
        resolve();
      };
      const unsubscribe = store.onChange(check);
      check();
    });

  for (const delivery of deliveries.all()) {
    if (delivery.nextTryAt !== null) schedule(delivery, delivery.nextTryAt - clock.now());
  }

  return {
    send(type, data) {
      const now = clock.now();
      const delay = settings.delaySeconds * SECOND;
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
        copies: settings.copies,
        nextTryAt: now + delay,
        createdAt: now,
      });
      schedule(delivery, delay);
      return delivery;
    },
    list: deliveries.all,
    redeliver(id) {
      const before = requireDelivery(id);
      const status = before.status === 'delivered' ? 'delivered' : 'pending';
      const delivery = deliveries.put({ ...before, status, failures: 0, copies: 1, nextTryAt: clock.now() });
      schedule(delivery, 0);
      return delivery;
    },
    async settled(id) {
      await waitUntil(() => {
        const delivery = deliveries.get(id);
        return delivery === undefined || !isPending(delivery);
      });
      return requireDelivery(id);
    },
    idle: () => waitUntil(() => deliveries.find(isPending) === undefined),
    pause() {
      paused = true;
      store.announce();
    },
    resume() {
      paused = false;
      store.announce();
      startWaiting();
    },
    get paused() {
      return paused;
    },
    get settings() {
      return settings;
    },
    configure(changes) {
      settings = { ...settings, ...changes };
      store.announce();
    },
    get endpoint() {
      return endpoint;
    },
    setEndpoint(next) {
      endpoint = next;
      store.announce();
      startWaiting();
    },
    async stop() {
      stopped = true;
      for (const cancel of timers.values()) cancel();
      stopSignal.abort();
      await Promise.all(inFlight.values());
    },
  };
}

/** Returns true if an attempt of the delivery is scheduled or in flight. */
function isPending({ nextTryAt }: Delivery): boolean {
  return nextTryAt !== null;
}

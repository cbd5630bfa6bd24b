import { requireFound } from './api-error';
import type { Clock } from './clock';
import { newId } from './ids';
import type { Store } from './store';
import { timedQueue } from './timed-queue';
import {
  attemptDelivery,
  type Delivery,
  type DeliveryAttempt,
  type WebhookEndpoint,
} from './webhook-attempt';

/** Settings that make deliveries fail, late or repeated, as in production. */
export interface DeliverySettings {
  /** Whether deliveries wait. Clerk cannot pause them. */
  readonly paused: boolean;
  /** Whether every attempt has an invalid signature. */
  readonly signatureBroken: boolean;
  /** Time between an event and its first attempt. */
  readonly delaySeconds: number;
  /** Number of successful deliveries of an event. All have the same id. */
  readonly copies: number;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Delays between Clerk's eight attempts, 27 h 35 min in total. */
const RETRY_DELAYS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR] as const;
const MAX_DELIVERIES = 1000;

export type Webhooks = ReturnType<typeof startWebhooks>;

/**
 * Starts the webhook sender, which signs events and delivers them to the endpoint of an application. In these comments, a delivery
 * is pending while an attempt is scheduled or in flight. The `status` of a pending delivery can also be `delivered`, because a
 * delivered event keeps this status while `redeliver` sends it again. Pending deliveries in the store continue their retry schedule.
 */
export function startWebhooks(options: {
  readonly store: Store;
  readonly clock: Clock;
  readonly endpoint: WebhookEndpoint | undefined;
  readonly retryScale: number;
  readonly instanceId: string;
}) {
  const { store, clock } = options;
  const { deliveries } = store;
  let endpoint = options.endpoint;
  let settings: DeliverySettings = { paused: false, signatureBroken: false, delaySeconds: 0, copies: 1 };
  const stopped = new AbortController();
  const queue = timedQueue(
    clock,
    async (id) => {
      const delivery = deliveries.get(id);
      if (delivery === undefined || endpoint === undefined) return;
      const how = { clock, signatureBroken: settings.signatureBroken, stop: stopped.signal };
      const attempt = await attemptDelivery(delivery, endpoint, how);
      const current = deliveries.get(id);
      if (!stopped.signal.aborted && current) record(current, attempt);
    },
    () => !settings.paused && !stopped.signal.aborted && endpoint !== undefined,
  );
  const schedule = ({ id, nextTryAt }: Delivery) => {
    if (nextTryAt !== null) queue.schedule(id, nextTryAt - clock.now());
  };
  const save = (delivery: Delivery): Delivery => {
    deliveries.put(delivery);
    schedule(delivery);
    return delivery;
  };
  const record = (delivery: Delivery, attempt: DeliveryAttempt) => {
    // An attempt that `redeliver` requested during this one follows at once.
    const isRequested = queue.isWaiting(delivery.id);
    const tried = afterAttempt(delivery, attempt, { now: clock.now(), retryScale: options.retryScale });
    if (isRequested) {
      const status = tried.status === 'delivered' ? 'delivered' : 'pending';
      deliveries.put({ ...delivery, attempts: tried.attempts, status });
    } else save(tried);
    if (deliveries.size() <= MAX_DELIVERIES) return;
    const oldest = deliveries.find((each) => !isPending(each));
    if (oldest !== undefined) deliveries.delete(oldest.id);
  };
  const requireDelivery = (id: string) => requireFound(deliveries.get(id), `Delivery ${id}`);
  const changed = () => {
    store.announce();
    queue.start();
  };
  const configure = (changes: Partial<DeliverySettings>) => {
    settings = { ...settings, ...changes };
    changed();
  };

  for (const delivery of deliveries.all()) schedule(delivery);

  return {
    /** Stores an event and delivers it. The delivery waits while the endpoint is paused or missing. */
    send(type: string, data: Record<string, unknown>): Delivery {
      const now = clock.now();
      return save({
        id: newId('msg'),
        type,
        body: JSON.stringify({
          data,
          event_attributes: { http_request: { client_ip: '127.0.0.1', user_agent: 'identity-provider' } },
          instance_id: options.instanceId,
          object: 'event',
          timestamp: now,
          type,
        }),
        status: 'pending',
        attempts: [],
        failures: 0,
        copies: settings.copies,
        nextTryAt: now + settings.delaySeconds * SECOND,
        createdAt: now,
      });
    },
    /** Returns the deliveries, oldest first. If there are more than 1000, the oldest finished ones are removed. */
    list: (): Delivery[] => deliveries.all(),
    /** Sends a delivery again. A delivered event stays `delivered` if the new attempts fail. Throws a 404 for an unknown id. */
    redeliver(id: string): Delivery {
      const before = requireDelivery(id);
      const status = before.status === 'delivered' ? 'delivered' : 'pending';
      return save({ ...before, status, failures: 0, copies: 1, nextTryAt: clock.now() });
    },
    /** Resolves with the delivery when it is no longer pending. Rejects for an unknown or removed id. */
    async settled(id: string): Promise<Delivery> {
      await waitUntil(store, () => {
        const delivery = deliveries.get(id);
        return delivery === undefined || !isPending(delivery);
      });
      return requireDelivery(id);
    },
    /** Resolves when no delivery is pending. Deliveries stay pending while the endpoint is paused or missing. */
    idle: () => waitUntil(store, () => deliveries.find(isPending) === undefined),
    /** Makes deliveries wait until `resume`. */
    pause: () => configure({ paused: true }),
    resume: () => configure({ paused: false }),
    get paused() {
      return settings.paused;
    },
    get settings() {
      return settings;
    },
    /** Changes settings for later events and attempts. */
    configure,
    get endpoint() {
      return endpoint;
    },
    /** Replaces the endpoint for later attempts. Undefined removes the endpoint. */
    setEndpoint(next: WebhookEndpoint | undefined) {
      endpoint = next;
      changed();
    },
    /** Aborts attempts in flight and starts no more. With a data file, pending deliveries continue after a restart. */
    async stop() {
      stopped.abort();
      await queue.stop();
    },
  };
}

/** Returns a delivery after an attempt, with the time of its next attempt if there is one. */
function afterAttempt(
  delivery: Delivery,
  attempt: DeliveryAttempt,
  { now, retryScale }: { readonly now: number; readonly retryScale: number },
): Delivery {
  const attempts = [...delivery.attempts, attempt];
  const { status, copies } = delivery;
  if (attempt.status !== null && attempt.status >= 200 && attempt.status < 300) {
    const next = copies > 1 ? { copies: copies - 1, nextTryAt: now } : { nextTryAt: null };
    return { ...delivery, attempts, status: 'delivered', ...next };
  }
  const failures = delivery.failures + 1;
  const delay = RETRY_DELAYS[delivery.failures];
  if (delay !== undefined) return { ...delivery, attempts, failures, nextTryAt: now + delay * retryScale };
  const final = status === 'delivered' ? status : 'failed';
  return { ...delivery, attempts, failures, status: final, nextTryAt: null };
}

/** Resolves when the condition holds after a change of the store. */
function waitUntil(store: Store, condition: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (!condition()) return;
      unsubscribe();
      resolve();
    };
    const unsubscribe = store.onChange(check);
    check();
  });
}

/** Returns true if an attempt of the delivery is scheduled or in flight. */
function isPending({ nextTryAt }: Delivery): boolean {
  return nextTryAt !== null;
}

import type { Clock } from './clock';
import type { Delivery, DeliveryAttempt } from './data';
import { newId } from './ids';
import type { Store } from './store';
import { attemptDelivery, type WebhookEndpoint } from './webhook-attempt';

/** The sender of signed events: what the provider does with an endpoint of an application. */
export interface Webhooks {
  /** Records an event and delivers it, at once unless the endpoint is paused or missing. */
  send(type: string, data: Record<string, unknown>): Delivery;
  /** Every delivery that is under way, and of the others the latest up to a thousand in all; oldest first. */
  list(): Delivery[];
  /**
   * Sends a delivery again, now, with a retry schedule of its own. One that was delivered remains so, whatever becomes
   * of that. Throws for an unknown id.
   */
  redeliver(id: string): Delivery;
  /** Forgets every delivery that is not under way; returns how many. */
  clear(): number;
  /** Resolves with the delivery once it is no longer under way. Rejects for an id that is unknown or forgotten. */
  settled(id: string): Promise<Delivery>;
  /** Resolves once no delivery is under way, which a paused or missing endpoint puts off. */
  idle(): Promise<void>;
  /** While paused, deliveries wait; they are sent on resume. The provider has no such thing: it disables endpoints. */
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
    const stop = stopSignal.signal;
    const attempt = await attemptDelivery(delivery, to, { clock, signatureBroken, stop });
    const current = deliveries.get(delivery.id);
    if (stopped || current === undefined) return;
    record(current, attempt);
  };

  const record = (delivery: Delivery, attempt: DeliveryAttempt) => {
    const isDelivered = attempt.status !== null && attempt.status >= 200 && attempt.status < 300;
    const delay = RETRY_DELAYS[delivery.failures];
    const tried = {
      ...delivery,
      attempts: [...delivery.attempts, attempt],
      failures: delivery.failures + (isDelivered ? 0 : 1),
    };
    if (!isDelivered && delay !== undefined) {
      const wait = delay * options.retryScale;
      schedule(deliveries.put({ ...tried, nextTryAt: clock.now() + wait }), wait);
      return;
    }
    cancelTimer(delivery.id);
    const wasDelivered = isDelivered || delivery.status === 'delivered';
    deliveries.put({ ...tried, status: wasDelivered ? 'delivered' : 'failed', nextTryAt: null });
    forgetOldest();
  };

  const forgetOldest = () => {
    if (deliveries.size() <= REMEMBERED_DELIVERIES) return;
    const oldest = deliveries.find((delivery) => !isUnderWay(delivery));
    if (oldest !== undefined) deliveries.delete(oldest.id);
  };

  const until = (isSo: () => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!isSo()) return;
        unsubscribe();
        resolve();
      };
      const unsubscribe = store.onChange(look);
      look();
    });

  for (const delivery of deliveries.all()) {
    if (delivery.nextTryAt !== null) schedule(delivery, delivery.nextTryAt - clock.now());
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
      schedule(delivery, 0);
      return delivery;
    },
    list: deliveries.all,
    redeliver(id) {
      const before = known(id);
      const status = before.status === 'delivered' ? 'delivered' : 'pending';
      const delivery = deliveries.put({ ...before, status, failures: 0, nextTryAt: clock.now() });
      schedule(delivery, 0);
      return delivery;
    },
    clear() {
      const done = deliveries.all().filter((delivery) => !isUnderWay(delivery));
      for (const { id } of done) deliveries.delete(id);
      return done.length;
    },
    async settled(id) {
      await until(() => {
        const delivery = deliveries.get(id);
        return delivery === undefined || !isUnderWay(delivery);
      });
      return known(id);
    },
    idle: () => until(() => deliveries.find(isUnderWay) === undefined),
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
    breakSignature(broken) {
      signatureBroken = broken;
      store.announce();
    },
    get signatureBroken() {
      return signatureBroken;
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
      await Promise.all(underWay.values());
    },
  };
}

/** Whether an attempt is due or under way: the first delivery's, or a redelivery's. */
function isUnderWay({ nextTryAt }: Delivery): boolean {
  return nextTryAt !== null;
}

import type { Meter } from '@opentelemetry/api';
import { methodOf } from './spans';
import type { Answered, Steps } from './with-span';

const MILLISECONDS = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500];
/** As the semantic conventions have them for HTTP. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** Up to the 27 h 35 min for which the provider delivers again. */
const AGE_SECONDS = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800, 7_200, 18_000, 36_000, 100_000];

const CACHE_OPERATIONS: Partial<Record<keyof Steps, string>> = {
  'cache read': 'read',
  'cache write': 'write',
};
const WEBHOOKS = '/webhooks/idp/v1/user-created';

/** Of a webhook: no label grows with what senders think of. */
const eventTypeOf = (type: string | undefined) => {
  if (type === undefined) return 'none';
  return type === 'user.created' ? type : 'other';
};

const resultOf = (status: number) => {
  if (status >= 500) return 'failed';
  return status >= 400 ? 'refused' : 'acknowledged';
};

/** What is counted and timed. */
export interface Metrics {
  step(name: keyof Steps, outcome: string, milliseconds: number): void;
  answered(answer: Answered): void;
  eventHandled(sentAt: number): void;
  breaker(change: 1 | -1): void;
}

/** Makes the instruments of docs/telemetry.md. Each attribute has few values, whatever a caller sends. */
export function instruments(meter: Meter): Metrics {
  const requests = meter.createHistogram('http.server.request.duration', {
    description: 'Requests that a route of the API answered, and how long it took.',
    unit: 's',
    advice: { explicitBucketBoundaries: SECONDS },
  });
  const guarded = meter.createCounter('identity_link.guard.requests', {
    description: 'Requests that came to the guard: `passed`, `refused` (401) or `failed`.',
    unit: '{request}',
  });
  const cache = meter.createHistogram('identity_link.cache.operation.duration', {
    description:
      'Calls to the cache and how long they took: `read` is a `hit`, a `miss` or a `fault`, `write` is `stored` or a `fault`.',
    unit: 'ms',
    advice: { explicitBucketBoundaries: MILLISECONDS },
  });
  const breakers = meter.createUpDownCounter('identity_link.cache.breaker.open', {
    description: '1 while the process calls the cache no more, else 0.',
    unit: '{breaker}',
  });
  breakers.add(0);
  const registrations = meter.createCounter('identity_link.registrations', {
    description:
      'Registrations by way in (`request`, `register`, `webhook`) and by outcome (`created`, `existing`).',
    unit: '{registration}',
  });
  const webhooks = meter.createCounter('identity_link.webhooks', {
    description:
      'Deliveries: of type `user.created`, `other`, or `none` where it is not known, and `acknowledged`, `refused` (400) or `failed`.',
    unit: '{webhook}',
  });
  const age = meter.createHistogram('identity_link.webhook.event.age', {
    description: 'How long ago the provider had sent an event when it was handled.',
    unit: 's',
    advice: { explicitBucketBoundaries: AGE_SECONDS },
  });
  let verifiedAt: number | undefined;
  meter
    .createObservableGauge('identity_link.webhook.last_verified.age', {
      description: 'Time since the last verified webhook of the process; absent before the first.',
      unit: 's',
    })
    .addCallback((result) => {
      if (verifiedAt !== undefined) result.observe((performance.now() - verifiedAt) / 1_000);
    });
  const connections = meter.createObservableUpDownCounter('db.client.connection.count', {
    description: 'Database connections of the process, `used` or `idle`; absent before the first statement.',
    unit: '{connection}',
  });
  const waiting = meter.createObservableUpDownCounter('db.client.connection.pending_requests', {
    description: 'Statements that wait for a database connection; absent before the first statement.',
    unit: '{request}',
  });
  const pool = { 'db.client.connection.pool.name': 'users' };
  meter.addBatchObservableCallback(
    (result) => {
      const { totalCount, idleCount, waitingCount } = globalThis.databaseConnection?.pool ?? {};
      if (totalCount === undefined || idleCount === undefined || waitingCount === undefined) return;
      const count = (state: 'used' | 'idle', value: number) =>
        result.observe(connections, value, { ...pool, 'db.client.connection.state': state });
      count('used', totalCount - idleCount);
      count('idle', idleCount);
      result.observe(waiting, waitingCount, pool);
    },
    [connections, waiting],
  );

  return {
    step(name, outcome, milliseconds) {
      if (name === 'guard') guarded.add(1, { 'identity_link.outcome': outcome });
      if (name === 'verify webhook' && outcome === 'verified') verifiedAt = performance.now();
      const operation = CACHE_OPERATIONS[name];
      if (operation) {
        const attributes = { 'identity_link.cache.operation': operation, 'identity_link.outcome': outcome };
        cache.record(milliseconds, attributes);
      }
    },
    answered({ method, route, status, seconds, facts }) {
      requests.record(seconds, {
        'http.request.method': methodOf(method),
        'http.route': route,
        'http.response.status_code': status,
      });
      const isWebhook = route === WEBHOOKS;
      const registered = (way: string, outcome: string) =>
        registrations.add(1, { 'identity_link.registration.way': way, 'identity_link.outcome': outcome });
      if (facts.caller) registered('request', facts.caller);
      if (facts.registered) registered(isWebhook ? 'webhook' : 'register', facts.registered);
      if (isWebhook) {
        webhooks.add(1, {
          'identity_link.webhook.type': eventTypeOf(facts.eventType),
          'identity_link.outcome': resultOf(status),
        });
      }
    },
    eventHandled(sentAt) {
      age.record(Math.max(0, Date.now() - sentAt) / 1_000);
    },
    breaker: (change) => breakers.add(change),
  };
}

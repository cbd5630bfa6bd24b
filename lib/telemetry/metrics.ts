import type { Meter } from '@opentelemetry/api';
import type { RequestLogFields } from '../log';
import { databasePool } from './database-pool';
import { methodOf } from './spans';
import type { CompletedRequest, SpanOutcomes } from './with-span';

/** Bucket boundaries for cache calls, which have a timeout of 500 ms. */
const CACHE_MILLISECONDS = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500];
/** Bucket boundaries for requests, from the OpenTelemetry semantic conventions for HTTP. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** Bucket boundaries for the age of events. The last one is above the 27 h 35 min for which the webhook sender retries. */
const AGE_SECONDS = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800, 7_200, 18_000, 36_000, 100_000];

const CACHE_OPERATIONS: Partial<Record<keyof SpanOutcomes, string>> = {
  'cache read': 'read',
  'cache write': 'write',
};
const WEBHOOKS = '/webhooks/idp/v1/user-created';

/** Returns one of three values, so that other event types do not create further time series. */
const eventTypeOf = (type: string | undefined) => {
  if (type === undefined) return 'none';
  return type === 'user.created' ? type : 'other';
};

const resultOf = (status: number) => {
  if (status >= 500) return 'failed';
  return status >= 400 ? 'rejected' : 'acknowledged';
};

export interface Metrics {
  recordSpan(name: keyof SpanOutcomes, outcome: string, milliseconds: number): void;
  recordRequest(request: CompletedRequest): void;
  recordPageUser(fields: RequestLogFields): void;
  recordEvent(createdAt: number): void;
  addOpenBreakers(change: 1 | -1): void;
}

/** Creates the metrics of docs/telemetry.md. Each attribute has a fixed set of values that clients cannot extend. */
export function instruments(meter: Meter): Metrics {
  const requests = meter.createHistogram('http.server.request.duration', {
    description: 'Duration of requests to API routes.',
    unit: 's',
    advice: { explicitBucketBoundaries: REQUEST_SECONDS },
  });
  const guarded = meter.createCounter('identity_link.guard.requests', {
    description:
      'Requests to guarded routes, and to pages and server actions that read the user: `passed`, `rejected` (no user) or `failed`.',
    unit: '{request}',
  });
  const cache = meter.createHistogram('identity_link.cache.operation.duration', {
    description:
      'Duration of cache calls. The outcome of a `read` is `hit`, `miss` or `error`. The outcome of a `write` is `stored` or `error`.',
    unit: 'ms',
    advice: { explicitBucketBoundaries: CACHE_MILLISECONDS },
  });
  const breakers = meter.createUpDownCounter('identity_link.cache.breaker.open', {
    description: '1 while the circuit breaker of the cache is open, else 0.',
    unit: '{breaker}',
  });
  breakers.add(0);
  // An expired previous id is an earlier id of a user at the identity provider. The service no longer accepts it
  // (lib/register.ts).
  const registrations = meter.createCounter('identity_link.registrations', {
    description:
      'Registrations by source (`request`: a request of the user, `register`: the route, `webhook`) and outcome (`created`, `existing`, or `forgotten`: deleted user or expired previous id).',
    unit: '{registration}',
  });
  const webhooks = meter.createCounter('identity_link.webhooks', {
    description:
      'Webhook deliveries by type (`user.created`, `other`, or `none` without a verified event) and outcome (`acknowledged`, `rejected` with 400 to 499, `failed`).',
    unit: '{webhook}',
  });
  const age = meter.createHistogram('identity_link.webhook.event.age', {
    description: 'Time between the creation of an event and its acknowledgment.',
    unit: 's',
    advice: { explicitBucketBoundaries: AGE_SECONDS },
  });
  let verifiedAt: number | undefined;
  meter
    .createObservableGauge('identity_link.webhook.last_verified.age', {
      description:
        'Time since the last verified webhook of the process. Absent before the first verified webhook.',
      unit: 's',
    })
    .addCallback((result) => {
      if (verifiedAt !== undefined) result.observe((performance.now() - verifiedAt) / 1_000);
    });
  const connections = meter.createObservableUpDownCounter('db.client.connection.count', {
    description: 'Database connections of the process, `used` or `idle`. Absent before the first statement.',
    unit: '{connection}',
  });
  const waiting = meter.createObservableUpDownCounter('db.client.connection.pending_requests', {
    description: 'Statements that wait for a database connection. Absent before the first statement.',
    unit: '{request}',
  });
  const pool = { 'db.client.connection.pool.name': 'users' };
  meter.addBatchObservableCallback(
    (result) => {
      if (databasePool.current === undefined) return;
      const { totalCount, idleCount, waitingCount } = databasePool.current;
      const count = (state: 'used' | 'idle', value: number) =>
        result.observe(connections, value, { ...pool, 'db.client.connection.state': state });
      count('used', totalCount - idleCount);
      count('idle', idleCount);
      result.observe(waiting, waitingCount, pool);
    },
    [connections, waiting],
  );

  const addRegistration = (source: string, outcome: string) =>
    registrations.add(1, {
      'identity_link.registration.source': source,
      'identity_link.outcome': outcome,
    });

  return {
    recordSpan(name, outcome, milliseconds) {
      if (name === 'guard') guarded.add(1, { 'identity_link.outcome': outcome });
      if (name === 'verify webhook' && outcome === 'verified') verifiedAt = performance.now();
      const operation = CACHE_OPERATIONS[name];
      if (operation) {
        const attributes = { 'identity_link.cache.operation': operation, 'identity_link.outcome': outcome };
        cache.record(milliseconds, attributes);
      }
    },
    recordRequest({ method, route, status, seconds, logFields }) {
      requests.record(seconds, {
        'http.request.method': methodOf(method),
        'http.route': route,
        'http.response.status_code': status,
      });
      const isWebhook = route === WEBHOOKS;
      if (logFields.caller) addRegistration('request', logFields.caller);
      if (logFields.registered) addRegistration(isWebhook ? 'webhook' : 'register', logFields.registered);
      if (isWebhook) {
        webhooks.add(1, {
          'identity_link.webhook.type': eventTypeOf(logFields.eventType),
          'identity_link.outcome': resultOf(status),
        });
      }
    },
    recordPageUser({ caller }) {
      if (caller) addRegistration('request', caller);
    },
    // The caller acknowledges the event immediately after this call.
    recordEvent(createdAt) {
      age.record(Math.max(0, Date.now() - createdAt) / 1_000);
    },
    addOpenBreakers: (change) => breakers.add(change),
  };
}

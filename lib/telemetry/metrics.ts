import type { Meter } from '@opentelemetry/api';
import type { HandledRequest, RequestFields, SpanOutcomes } from '../core/ports';

/** Bucket boundaries for requests, from the OpenTelemetry semantic conventions for HTTP. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const METHOD = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/;
const WEBHOOKS = '/webhooks/idp/v1/user-created';

const resultOf = (status: number) => {
  if (status >= 500) return 'failed';
  return status >= 400 ? 'rejected' : 'acknowledged';
};

/** Creates the metrics of docs/telemetry.md. Each attribute has a fixed set of values that clients cannot extend. */
export function instruments(meter: Meter) {
  const requests = meter.createHistogram('http.server.request.duration', {
    description: 'Duration of requests to API routes.',
    unit: 's',
    advice: { explicitBucketBoundaries: REQUEST_SECONDS },
  });
  const cache = meter.createHistogram('identity_link.cache.operation.duration', {
    description: 'Duration of cache calls.',
    unit: 'ms',
  });
  const breakers = meter.createUpDownCounter('identity_link.cache.breaker.open', {
    description: '1 while the circuit breaker of the cache is open, else 0.',
    unit: '{breaker}',
  });
  breakers.add(0);
  const registrations = meter.createCounter('identity_link.registrations', {
    description: 'Registrations by source and outcome.',
    unit: '{registration}',
  });
  const webhooks = meter.createCounter('identity_link.webhooks', {
    description: 'Webhook deliveries by outcome.',
    unit: '{webhook}',
  });
  let verifiedAt: number | undefined;
  meter
    .createObservableGauge('identity_link.webhook.last_verified.age', {
      description: 'Time since the last verified webhook of the process.',
      unit: 's',
    })
    .addCallback((result) => {
      if (verifiedAt !== undefined) result.observe((performance.now() - verifiedAt) / 1_000);
    });

  const addRegistration = (source: string, outcome?: string) => {
    const attributes = { 'identity_link.registration.source': source, 'identity_link.outcome': outcome };
    if (outcome) registrations.add(1, attributes);
  };

  return {
    recordSpan(name: keyof SpanOutcomes, outcome: string, milliseconds: number): void {
      if (name === 'verify webhook' && outcome === 'verified') verifiedAt = performance.now();
      if (name !== 'cache read' && name !== 'cache write') return;
      const operation = name === 'cache read' ? 'read' : 'write';
      const attributes = { 'identity_link.cache.operation': operation, 'identity_link.outcome': outcome };
      cache.record(milliseconds, attributes);
    },
    /** Returns the attributes of the request. */
    recordRequest({ method, route, status, ms, fields }: HandledRequest) {
      const attributes = {
        'http.request.method': METHOD.test(method) ? method : '_OTHER',
        'http.route': route,
        'http.response.status_code': status,
      };
      requests.record(ms / 1_000, attributes);
      const isWebhook = route === WEBHOOKS;
      addRegistration('request', fields.caller);
      addRegistration(isWebhook ? 'webhook' : 'register', fields.registered);
      if (isWebhook) webhooks.add(1, { 'identity_link.outcome': resultOf(status) });
      return attributes;
    },
    recordPageUser: ({ caller }: RequestFields): void => addRegistration('request', caller),
    addOpenBreakers: (change: 1 | -1): void => breakers.add(change),
  };
}

import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import pino from 'pino';
import type { HandledRequest, RequestLogFields, SpanOutcomes, Telemetry } from '../telemetry/port';
import { describeError } from './describe-error';
import { processState } from './process-state';

export type { RequestLogFields };

const state = processState('telemetry', (): { current?: Telemetry } => ({}));

/** Returns the telemetry of this process, or undefined if it is disabled. */
export const telemetry = (): Telemetry | undefined => state.current;

/** Enables telemetry in all bundles of this process. Log lines then contain the ids of the current span if it is sampled. */
export function enableTelemetry(enabled: Telemetry): void {
  state.current = enabled;
}

/** Runs `work` in a span that records the outcome. If telemetry is disabled, runs `work` without a span. */
export function withSpan<S extends keyof SpanOutcomes, T>(
  name: S,
  work: () => Promise<T>,
  outcomeOf: (result: T) => SpanOutcomes[S],
): Promise<T> {
  return state.current ? state.current.withSpan(name, work, outcomeOf) : work();
}

/**
 * Writes one JSON object per line to standard output. A line never contains a credential, an e-mail address or a body, because
 * the callers do not pass them.
 */
export const log = pino({
  base: null,
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (level) => ({ level }) },
  mixin: () => telemetry()?.spanIds() ?? {},
});

const WARN_EVERY_MS = 60_000;

/**
 * Returns a function that logs a warning at most once a minute. Use it for warnings that any client can cause or that repeat
 * during an outage.
 */
export function rateLimitedWarning(message: string): (fields?: object) => void {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (fields = {}) => {
    if (performance.now() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = performance.now();
    log.warn(fields, message);
  };
}

const SAFE_REQUEST_ID = /^[A-Za-z0-9_.:-]{1,64}$/;

/** Returns the id of a request: the client's `x-request-id` if it matches SAFE_REQUEST_ID, otherwise a new UUID. */
export const requestIdOf = (header: unknown): string =>
  typeof header === 'string' && SAFE_REQUEST_ID.test(header) ? header : randomUUID();

const currentFields = new AsyncLocalStorage<RequestLogFields>();

/** Runs `work`. Calls of `addLogFields` during `work` write to `fields`. */
export function withLogFields<T>(fields: RequestLogFields, work: () => Promise<T>): Promise<T> {
  return currentFields.run(fields, work);
}

/** Adds fields to the log line of the current request. Has no effect outside of a call of `withLogFields`. */
export function addLogFields(fields: RequestLogFields): void {
  Object.assign(currentFields.getStore() ?? {}, fields);
}

/** Writes the log line of a request and records its metrics. */
export function logRequest(request: HandledRequest): void {
  telemetry()?.recordRequest(request);
  const { requestId, method, route, status, ms, fields, error, quiet } = request;
  const line = {
    requestId,
    route: `${method} ${route}`,
    status,
    ms: Math.round(ms),
    ...fields,
    ...(status < 500 ? {} : { error: describeError(error) }),
  };
  log[quiet && error === undefined ? 'debug' : status < 500 ? 'info' : 'error'](line, 'request');
}

/**
 * Runs the lookup of the user of a page or a server action, and writes one log line for it. Within a route, only adds the
 * fields to the line of the route.
 */
export async function logUserLookup<T>(headers: Pick<Headers, 'get'>, work: () => Promise<T>): Promise<T> {
  if (currentFields.getStore()) return work();
  const startedAt = performance.now();
  const fields: RequestLogFields = {};
  try {
    return await withLogFields(fields, work);
  } finally {
    telemetry()?.recordPageUser(fields);
    const requestId = requestIdOf(headers.get('x-request-id'));
    log.info({ requestId, ms: Math.round(performance.now() - startedAt), ...fields }, 'user');
  }
}

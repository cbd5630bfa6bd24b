import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { describeError } from './errors/describe-error';
import { type RequestLogFields, telemetry } from './telemetry/with-span';

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

/** A request that a route has handled. */
export interface HandledRequest {
  readonly requestId: string;
  readonly method: string;
  /** The path with the names of its parameters, such as `/notes/v1/[noteId]`. */
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  readonly fields: RequestLogFields;
  readonly error?: unknown;
  /** True for a request that is logged at the level `debug` unless its handler throws. */
  readonly quiet: boolean;
}

/** Writes the log line of a request and records its metrics. */
export function logRequest({ quiet, error, fields, ...request }: HandledRequest): void {
  const { requestId, method, route, status, ms } = request;
  telemetry()?.recordRequest({ method, route, status, seconds: ms / 1_000, logFields: fields });
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

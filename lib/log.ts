import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import pino from 'pino';
import type { UnauthenticatedReason } from './errors/unauthenticated-reason';
import { processState } from './process-state';

const trace = processState('trace', (): { spanIds?: () => object | undefined } => ({}));

/** Sets the function that returns the ids of the current trace and span. Log lines then contain these ids. */
export function setSpanIds(spanIds: () => object | undefined): void {
  trace.spanIds = spanIds;
}

/**
 * Writes one JSON object per line to standard output. A line never contains a credential, an e-mail address or a body, because
 * the callers do not pass them.
 */
export const log = pino({
  base: null,
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (level) => ({ level }) },
  mixin: () => trace.spanIds?.() ?? {},
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

/** Fields of a request's log line besides id, route, status and duration. */
export interface RequestLogFields {
  /** Result of the lookup of the caller's internal id in the cache. `bypass` means that the cache call failed. */
  cache?: 'hit' | 'miss' | 'bypass';
  /**
   * Result of the registration that lib/guard.ts ran for the caller. A registration links a user of the identity provider to an
   * internal id. Absent, for example, if the cache contained the caller's id.
   */
  caller?: 'created' | 'existing';
  /**
   * Result of a registration by `POST /auth/v1/register` or by a webhook. `forgotten` means that the registration had no
   * effect, because an operator has deleted the user.
   */
  registered?: 'created' | 'existing' | 'forgotten';
  /** Why the request has no authenticated user. */
  reason?: UnauthenticatedReason;
  /** Result of the event handler in events/. `repeated` means that an earlier delivery of the same message ran the handler. */
  handler?: 'completed' | 'repeated';
  eventType?: string;
  messageId?: string;
}

const currentFields = new AsyncLocalStorage<RequestLogFields>();

/** Runs `work`. Calls of `addLogFields` during `work` write to `fields`. */
export function withLogFields<T>(fields: RequestLogFields, work: () => Promise<T>): Promise<T> {
  return currentFields.run(fields, work);
}

/** Returns true during a call of `withLogFields`, for example while a route runs. The route logs the fields at its end. */
export const isInRoute = (): boolean => currentFields.getStore() !== undefined;

/** Adds fields to the log line of the current request. Has no effect outside of a call of `withLogFields`. */
export function addLogFields(fields: RequestLogFields): void {
  Object.assign(currentFields.getStore() ?? {}, fields);
}

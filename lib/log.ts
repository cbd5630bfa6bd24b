import pino from 'pino';
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

/** Fields of a request's log line besides id, route, status and duration. */
export interface RequestLogFields {
  /** Result of the lookup of the caller's internal id in the cache. `bypass` means that the cache call failed. */
  cache?: 'hit' | 'miss' | 'bypass';
  /** Result of the registration that the guard ran for the caller. Absent if the cache contained the caller's id. */
  caller?: 'created' | 'existing';
  /** Result of a registration by `POST /auth/v1/register` or by a webhook. `forgotten` means that it had no effect. */
  registered?: 'created' | 'existing' | 'forgotten';
  /** Why the request has no authenticated user. */
  reason?: string;
  /** Result of the event handler. `repeated` means that an earlier delivery of the same message ran the handler. */
  handler?: 'completed' | 'repeated';
  eventType?: string;
  /** Time between the event and its delivery. */
  eventAgeMs?: number;
  messageId?: string;
}

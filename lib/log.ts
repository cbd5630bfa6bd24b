import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import pino from 'pino';
import type { UnauthenticatedReason } from './errors/unauthenticated-reason';
import { processState } from './process-state';

const trace = processState('trace', (): { spanIds?: () => object | undefined } => ({}));

/** Sets the function that returns the ids of the current span. Each log line contains them. */
export function setSpanIds(spanIds: () => object | undefined): void {
  trace.spanIds = spanIds;
}

/** Structured log lines on standard output, one JSON object each. Never a credential, e-mail or body. */
export const log = pino({
  base: null,
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (level) => ({ level }) },
  mixin: () => trace.spanIds?.() ?? {},
});

const WARN_EVERY_MS = 60_000;

/** Warns in these words at most once a minute: of what anybody can bring about, or what goes on as long as an outage. */
export function rateLimitedWarning(message: string): (about?: object) => void {
  let warned = Number.NEGATIVE_INFINITY;
  return (about = {}) => {
    if (performance.now() - warned < WARN_EVERY_MS) return;
    warned = performance.now();
    log.warn(about, message);
  };
}

const PLAIN_REQUEST_ID = /^[A-Za-z0-9_.:-]{1,64}$/;

/** The id of a request, in its answer and in its log line: the caller's own, if it is short and plain. */
export const requestIdOf = (given: unknown): string =>
  typeof given === 'string' && PLAIN_REQUEST_ID.test(given) ? given : randomUUID();

/** What a request's log line says about its course, besides route, status and duration. */
export interface RequestLogFields {
  /** Where the guard found the internal user id: `bypass` means that the cache did not answer. */
  cache?: 'hit' | 'miss' | 'bypass';
  /** What the guard's registration of the caller came to, where the cache had no answer. */
  caller?: 'created' | 'existing';
  /** What the registration that the request asked for came to. */
  registered?: 'created' | 'existing';
  /** Why the guard found no verified session. */
  reason?: UnauthenticatedReason;
  eventType?: string;
  messageId?: string;
}

const requestFacts = new AsyncLocalStorage<RequestLogFields>();

/** Runs `work` so that every `addLogFields` below it lands in `facts`. */
export function withLogFields<T>(facts: RequestLogFields, work: () => Promise<T>): Promise<T> {
  return requestFacts.run(facts, work);
}

/** Adds to the log line of the request under way; does nothing outside of one. */
export function addLogFields(facts: RequestLogFields): void {
  Object.assign(requestFacts.getStore() ?? {}, facts);
}

import pino from 'pino';
import { telemetry } from './telemetry';

/** Writes one JSON object per line to standard output. Callers pass no credential, e-mail address or body. */
export const log = pino({
  base: null,
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (level) => ({ level }) },
  mixin: () => telemetry()?.spanIds() ?? {},
});

const WARN_EVERY_MS = 60_000;

/** Returns a function that logs a warning that a client can cause, or that repeats in an outage, at most once a minute. */
export function rateLimitedWarning(message: string): (fields?: object) => void {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (fields = {}) => {
    if (performance.now() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = performance.now();
    log.warn(fields, message);
  };
}

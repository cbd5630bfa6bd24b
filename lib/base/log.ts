import pino from 'pino';
import { telemetry } from './telemetry';

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

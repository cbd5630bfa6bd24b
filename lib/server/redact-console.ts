import { describeError, type ErrorDescription } from '../errors/describe-error';
import { log } from '../log';

/** Removes the messages from an error description, because they may contain text of a client. */
function withoutMessage({ message: _message, cause, ...described }: ErrorDescription): ErrorDescription {
  return cause ? { ...described, cause: withoutMessage(cause) } : described;
}

/** Returns the description of an error without messages, and the digest that the error page shows. */
function describePrinted(error: Error): object {
  const digest = 'digest' in error ? String(error.digest) : '';
  return {
    error: withoutMessage(describeError(error)),
    ...(/^\d+(?:@E\d+)?$/.test(digest) ? { digest } : {}),
  };
}

const LOG_EVERY_MS = 60_000;
/** Maximum number of places that are counted. The libraries print in far fewer places. */
const MAX_ORIGINS = 100;

/**
 * Returns a function to call with the origin of each line. It returns undefined if the line must be omitted, else the number
 * of lines omitted since the last logged line of that origin.
 */
export function lineLimiter(): (origin: string) => number | undefined {
  const origins = new Map<string, { loggedAt: number; omitted: number }>();
  return (origin) => {
    const now = performance.now();
    const known = origins.get(origin);
    if (known && now - known.loggedAt < LOG_EVERY_MS) {
      known.omitted += 1;
      return undefined;
    }
    if (!known && origins.size >= MAX_ORIGINS) origins.clear();
    origins.set(origin, { loggedAt: now, omitted: 0 });
    return known?.omitted ?? 0;
  };
}

/**
 * Replaces the console for the libraries of this process. Each line becomes a log line with the name of the error and its
 * stack frames, but without text, because Next.js and the provider's SDK quote paths, headers and bodies of requests. Logs
 * at most one line a minute from the same frame, because a client can cause such a line with each request. `omitted` is the
 * number of lines that were omitted before a line. Does not change the console under `next dev`.
 */
export function redactConsole(): void {
  if (process.env.NODE_ENV === 'development') return;
  const limit = lineLimiter();
  for (const level of ['error', 'warn'] as const) {
    console[level] = (...values: unknown[]) => {
      const frames = describeError(new Error('printed')).frames?.slice(1) ?? [];
      const error = values.find((value) => value instanceof Error);
      const omitted = limit(`${level} ${frames[0]} ${error && describeError(error).frames?.[0]}`);
      if (omitted === undefined) return;
      log[level](
        { ...(error ? describePrinted(error) : { frames }), ...(omitted ? { omitted } : {}) },
        'printed by a library',
      );
    };
  }
  for (const level of ['log', 'info', 'debug', 'trace'] as const) console[level] = () => undefined;
}

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
/** Maximum number of origins with a count of omitted lines. The libraries print from far fewer places. */
const MAX_ORIGINS = 100;

/**
 * Returns a function that limits the log to one line a minute for each origin. An origin is a text that identifies the code
 * that printed the line. The function returns undefined if the line must be omitted. Otherwise, the function returns the
 * number of lines of this origin that were omitted since the last logged line.
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
 * Replaces the console for the libraries of this process. A line of `error` or `warn` becomes a log line with the stack
 * frames and, if the library printed an error, the name of the error. The log line does not contain the printed text,
 * because Next.js and the provider's SDK quote paths, headers and bodies of requests. Lines of other methods are discarded.
 *
 * Logs at most one line a minute from the same origin, because a client can cause such a line with each request. `omitted` is
 * the number of lines of this origin that were omitted since the last logged line. Under `next dev`, the console stays
 * unchanged.
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

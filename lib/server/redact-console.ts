import { describeError, type ErrorDescription } from '../errors/describe-error';
import { log } from '../log';

/** Removes the messages from an error description, because messages may contain text that a client sent. */
function withoutMessage({ message: _message, cause, ...described }: ErrorDescription): ErrorDescription {
  return cause ? { ...described, cause: withoutMessage(cause) } : described;
}

/** Returns the description of an error without messages, and the digest that the error page shows. */
function describePrinted(error: Error): object {
  const digest = String(Reflect.get(error, 'digest'));
  return {
    error: withoutMessage(describeError(error)),
    ...(/^\d+(?:@E\d+)?$/.test(digest) ? { digest } : {}),
  };
}

const LOG_EVERY_MS = 60_000;
/**
 * Maximum number of origins (places in the code that print lines) that `lineLimiter` stores. If a new origin would exceed this
 * limit, `lineLimiter` first deletes all origins and their counts. The installed libraries have far fewer such places, so the
 * limit is normally not reached.
 */
const MAX_ORIGINS = 100;

/**
 * Returns a function that limits the log to one line a minute for each origin. An origin is a text that identifies the code
 * that printed a line. The returned function gets the origin of a line. It returns undefined if the line must be omitted.
 * Otherwise, it returns how many lines of this origin were omitted since the last logged line of this origin.
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
 * Replaces the console for the libraries of this process. Calls of `console.error` and `console.warn` write log lines, at most
 * one line a minute for each origin (`lineLimiter`), because a client can cause a call with each request. The field `omitted`
 * is the number of lines of the origin that were omitted since its last logged line.
 *
 * If the library printed an error, the log line describes the error, including its name and stack frames. Otherwise, the log
 * line has the stack frames of the call. The log line does not contain the printed text, because Next.js and the identity
 * provider's SDK quote paths, headers and bodies of requests.
 *
 * Discards output of `console.log`, `info`, `debug` and `trace`. Under `next dev`, the console stays unchanged.
 */
export function redactConsole(): void {
  if (process.env.NODE_ENV === 'development') return;
  const limit = lineLimiter();
  for (const level of ['error', 'warn'] as const) {
    console[level] = (...values: unknown[]) => {
      const frames = describeError(new Error()).frames?.slice(1) ?? [];
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

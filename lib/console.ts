import { describeError, type ErrorDescription, log } from './log';

/** An error as the log describes it, without a word of its message, which may be all a caller's. */
function withoutMessage({ message: _message, cause, ...described }: ErrorDescription): ErrorDescription {
  return cause ? { ...described, cause: withoutMessage(cause) } : described;
}

/** What kind of error it was, where it was made, and the hash that the page shows in its place. */
function describePrinted(error: Error): object {
  const digest = 'digest' in error ? String(error.digest) : '';
  return {
    error: withoutMessage(describeError(error)),
    ...(/^\d+(?:@E\d+)?$/.test(digest) ? { digest } : {}),
  };
}

/**
 * From here on, nothing that a library prints reaches the log word by word: the framework and the provider's SDK quote
 * paths, headers and bodies there, with line breaks and all. What stays is what kind of error it was, and who said so.
 * Under `next dev`, whose requests are the developer's own, everything is printed as it is.
 */
export function withholdConsole(): void {
  if (process.env.NODE_ENV === 'development') return;
  for (const level of ['error', 'warn'] as const) {
    console[level] = (...values: unknown[]) => {
      const error = values.find((value) => value instanceof Error);
      const printed = error
        ? describePrinted(error)
        : { frames: describeError(new Error('printed')).frames?.slice(1) };
      log[level](printed, 'printed by a library');
    };
  }
  for (const level of ['log', 'info', 'debug', 'trace'] as const) console[level] = () => undefined;
}

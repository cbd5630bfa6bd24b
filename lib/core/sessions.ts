import { withTimeout } from './async';
import type { Sessions } from './ports';
import type { Verdict } from './verdict';

const UNCHECKED: Verdict = { reason: 'not-verified', isUnchecked: true };

/**
 * Returns the sessions of several providers. The first one that finds a credential of its own decides, also if it rejects it. If
 * it fails or takes more than `milliseconds`, the credential is unchecked, and `warn` gets the error.
 */
export const firstOf = <R>(
  all: readonly Sessions<R>[],
  milliseconds: number,
  warn?: (error: unknown) => void,
): Sessions<R> => ({
  async authenticate(request) {
    for (const sessions of all) {
      const asked = withTimeout(milliseconds, (async () => sessions.authenticate(request))());
      const verdict = await asked.catch((error: unknown) => {
        warn?.(error);
        return UNCHECKED;
      });
      if (verdict) return verdict;
    }
    return undefined;
  },
});

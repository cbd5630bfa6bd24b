import type { Session } from './data';
import { ApiError } from './error';
import type { Instance } from './instance';

/** Maximum time in ms between the last proof of the first factor (password or mailed code) and a sensitive operation. */
const STRICT_AGE = 10 * 60 * 1000;

/** Returns the time when the user last proved the first factor in this session. The sign-in counts as a proof. */
export function firstFactorVerifiedAt({ createdAt, reverifiedAt }: Session): number {
  return reverifiedAt ?? createdAt;
}

/**
 * Throws a 403 if the instance requires a recent proof of the first factor and the last proof in this session is too old. The
 * SDK then prompts the user for the first factor.
 */
export function requireRecentFirstFactor(instance: Instance, session: Session): void {
  const age = instance.clock.now() - firstFactorVerifiedAt(session);
  if (!instance.reverification || age <= STRICT_AGE) return;
  const message = 'You need to provide additional verification to perform this operation.';
  throw new ApiError(403, 'session_reverification_required', message);
}

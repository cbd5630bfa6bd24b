import type { Session } from './data';
import { ApiError } from './error';
import type { Instance } from './instance';

/** Age of the first factor after which the instance asks for it again before a sensitive operation. */
const STRICT_AGE = 10 * 60 * 1000;

/** When the user of a session last proved the first factor. */
export function firstFactorVerifiedAt({ createdAt, reverifiedAt }: Session): number {
  return reverifiedAt ?? createdAt;
}

/** Throws the 403 that makes the SDK ask for the first factor, if the instance requires a recent one. */
export function requireRecentFirstFactor(instance: Instance, session: Session): void {
  const age = instance.clock.now() - firstFactorVerifiedAt(session);
  if (!instance.reverification || age <= STRICT_AGE) return;
  const message = 'You need to provide additional verification to perform this operation.';
  throw new ApiError(403, 'session_reverification_required', message);
}

/**
 * Why the guard found no verified session: for its log line, never for the caller. Alerts may rely on these words; the
 * README says what to do about each.
 */
export const UNAUTHENTICATED_REASONS = [
  'no-credential',
  'foreign-cookie',
  'incomplete-cookies',
  'malformed',
  'expired',
  'not-yet-valid',
  'wrong-key',
  'wrong-party',
  'pending-session',
  'no-user-id',
  'not-verified',
  'no-auth-state',
] as const;

/** One of these words. */
export type UnauthenticatedReason = (typeof UNAUTHENTICATED_REASONS)[number];

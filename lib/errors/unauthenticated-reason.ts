/**
 * Reasons for a 401 of lib/guard.ts. They appear in the log and never in a response. Do not rename them, because alerts may
 * depend on them. docs/troubleshooting.md describes how to handle each of them.
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
  'forgotten',
  'not-verified',
  'no-auth-state',
] as const;

export type UnauthenticatedReason = (typeof UNAUTHENTICATED_REASONS)[number];

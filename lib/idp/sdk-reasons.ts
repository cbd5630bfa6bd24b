import type { UnauthenticatedReason } from '../errors/unauthenticated-reason';

/**
 * Maps each reason for which the middleware of Clerk's SDK rejects a credential to a reason of this service. A reason of the
 * SDK that is not listed becomes `not-verified`. Examples are an error of the SDK, missing keys, and a reason that a later
 * version of the SDK adds. tests/unit/sdk-reasons.test.ts compares this list with the enumerations of the installed SDK.
 */
const MEANINGS = new Map<string, UnauthenticatedReason>([
  ['token-invalid', 'malformed'],
  ['token-invalid-algorithm', 'malformed'],
  ['token-type-mismatch', 'malformed'],
  // The signature is valid, but a claim of session tokens is missing.
  ['token-verification-failed', 'malformed'],
  ['token-expired', 'expired'],
  ['session-token-expired', 'expired'],
  // The token is older than the browser's last sign-in.
  ['session-token-iat-before-client-uat', 'expired'],
  ['token-not-active-yet', 'not-yet-valid'],
  ['token-iat-in-the-future', 'not-yet-valid'],
  ['session-token-nbf', 'not-yet-valid'],
  ['session-token-iat-in-the-future', 'not-yet-valid'],
  ['token-invalid-signature', 'wrong-key'],
  ['jwk-kid-mismatch', 'wrong-key'],
  // Another instance issued the token. Only later versions of the SDK have this reason, so the test makes an exception for it.
  ['token-invalid-issuer', 'wrong-key'],
  ['token-invalid-authorized-parties', 'wrong-party'],
  ['dev-browser-missing', 'incomplete-cookies'],
  ['session-token-but-no-client-uat', 'incomplete-cookies'],
  ['client-uat-but-no-session-token', 'incomplete-cookies'],
  ['session-token-and-uat-missing', 'incomplete-cookies'],
]);

export const SDK_REASONS = [...MEANINGS.keys()];

/**
 * Suffix that the SDK adds to a reason to state why it did not renew the session. `MEANINGS` lists reasons without the suffix.
 */
const REFRESH = /-refresh-.*/;

/** Converts a reason of the SDK to a reason of this service. */
export const reasonOfSdk = (word: string): UnauthenticatedReason =>
  MEANINGS.get(word.replace(REFRESH, '')) ?? 'not-verified';

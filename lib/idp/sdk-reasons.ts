import type { UnauthenticatedReason } from '../errors/unauthenticated-reason';

/**
 * Maps reasons for which the SDK's middleware rejects a credential to reasons of this service. A reason that is not listed
 * becomes `not-verified`. In that case, the SDK failed or had no keys, or a later version of the SDK added the reason.
 * tests/unit/sdk-reasons.test.ts compares this list with the enumerations of the installed SDK.
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
  // Another instance issued the token. Only later versions of the SDK have this reason.
  ['token-invalid-issuer', 'wrong-key'],
  ['token-invalid-authorized-parties', 'wrong-party'],
  ['dev-browser-missing', 'incomplete-cookies'],
  ['session-token-but-no-client-uat', 'incomplete-cookies'],
  ['client-uat-but-no-session-token', 'incomplete-cookies'],
  ['session-token-and-uat-missing', 'incomplete-cookies'],
]);

/** The SDK's reasons that `MEANINGS` lists. */
export const SDK_REASONS = [...MEANINGS.keys()];

/** Suffix that states why the SDK did not renew a session. It is removed, because API requests never allow a renewal. */
const REFRESH = /-refresh-.*/;

/** Converts a reason of the SDK to a reason of this service. */
export const reasonOfSdk = (word: string): UnauthenticatedReason =>
  MEANINGS.get(word.replace(REFRESH, '')) ?? 'not-verified';

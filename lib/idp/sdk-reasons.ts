import type { UnauthenticatedReason } from '../errors/unauthenticated-reason';

/**
 * Reasons of the SDK's middleware, and ours for each. A reason that is not listed becomes `not-verified`, because the SDK
 * did not judge the token: it had no keys, it failed, or it is a later version. tests/unit/sdk-reasons.test.ts compares
 * this list with the enumerations of the installed SDK.
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
  // From later versions of the SDK: another instance issued the token.
  ['token-invalid-issuer', 'wrong-key'],
  ['token-invalid-authorized-parties', 'wrong-party'],
  ['dev-browser-missing', 'incomplete-cookies'],
  ['session-token-but-no-client-uat', 'incomplete-cookies'],
  ['client-uat-but-no-session-token', 'incomplete-cookies'],
  ['session-token-and-uat-missing', 'incomplete-cookies'],
]);

/** Every reason of the SDK that has a reason of ours. */
export const SDK_REASONS = [...MEANINGS.keys()];

/** Suffix that says why the SDK did not renew a session. API requests never allow a renewal. */
const REFRESH = /-refresh-.*$/;

/** Returns our reason for a reason of the SDK. */
export const reasonOfSdk = (word: string): UnauthenticatedReason =>
  MEANINGS.get(word.replace(REFRESH, '')) ?? 'not-verified';

import type { UnauthenticatedReason } from '../errors/unauthenticated-reason';

/** What the SDK's words come to. Of those that are not here nothing was judged: no keys, a fault, or a word of a later version. */
const MEANINGS = new Map<string, UnauthenticatedReason>([
  ['token-invalid', 'malformed'],
  ['token-invalid-algorithm', 'malformed'],
  ['token-type-mismatch', 'malformed'],
  // Signed by the right key, it lacks a claim that every session token has.
  ['token-verification-failed', 'malformed'],
  ['token-expired', 'expired'],
  ['session-token-expired', 'expired'],
  // Older than the browser's last sign-in.
  ['session-token-iat-before-client-uat', 'expired'],
  ['token-not-active-yet', 'not-yet-valid'],
  ['token-iat-in-the-future', 'not-yet-valid'],
  ['session-token-nbf', 'not-yet-valid'],
  ['session-token-iat-in-the-future', 'not-yet-valid'],
  ['token-invalid-signature', 'wrong-key'],
  ['jwk-kid-mismatch', 'wrong-key'],
  ['token-invalid-authorized-parties', 'wrong-party'],
  ['dev-browser-missing', 'incomplete-cookies'],
  ['session-token-but-no-client-uat', 'incomplete-cookies'],
  ['client-uat-but-no-session-token', 'incomplete-cookies'],
  ['session-token-and-uat-missing', 'incomplete-cookies'],
]);

/** Why no renewal was tried, which a view for the auth state never allows. */
const REFRESH = /-refresh-.*$/;

/** The SDK's word for why it found no session, in ours. */
export const reasonOfSdk = (word: string): UnauthenticatedReason =>
  MEANINGS.get(word.replace(REFRESH, '')) ?? 'not-verified';

import { readFileSync } from 'node:fs';
import { TokenVerificationErrorReason } from '@clerk/backend/errors';
import { expect, test } from 'vitest';
import { UNAUTHENTICATED_REASONS } from '#lib/errors/unauthenticated-reason';
import { reasonOfSdk } from '#lib/idp/sdk-reasons';

/** Nothing was judged: the provider's keys could not be had. */
const NO_KEYS = [
  TokenVerificationErrorReason.InvalidSecretKey,
  TokenVerificationErrorReason.LocalJWKMissing,
  TokenVerificationErrorReason.RemoteJWKFailedToLoad,
  TokenVerificationErrorReason.RemoteJWKInvalid,
  TokenVerificationErrorReason.RemoteJWKMissing,
  TokenVerificationErrorReason.JWKFailedToResolve,
];

test('each word in which the SDK refuses a token has one of ours, and where it had no keys it is "not-verified"', () => {
  const words = Object.values(TokenVerificationErrorReason);
  expect(words.length).toBeGreaterThan(NO_KEYS.length);
  expect(words.filter((word) => reasonOfSdk(word) === 'not-verified').toSorted()).toEqual(NO_KEYS.toSorted());
});

test.each(['', 'unexpected-error', 'a-word-of-a-later-version', '__proto__'])(
  'a word that is not known is "not-verified": %j',
  (word) => {
    expect(reasonOfSdk(word)).toBe('not-verified');
  },
);

test('the README says what to do about each reason, and about no other', () => {
  const [, table = ''] = readFileSync('README.md', 'utf8').split('| `reason` |');
  const rows = [...(table.split('\n\n')[0] ?? '').matchAll(/^\| `([a-z-]+)` \|/gm)].map(
    ([, reason]) => reason,
  );
  expect(rows).toEqual(UNAUTHENTICATED_REASONS);
});

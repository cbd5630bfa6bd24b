import { TokenVerificationErrorReason } from '@clerk/backend/errors';
import { expect, test } from 'vitest';
import { reasonOfSdk } from '#lib/idp/sdk-reasons';
import { authErrorReasons, MISSING_KEYS, OTHER_THAN_TOKEN } from '../reasons';

/** Reasons of the SDK for which `reasonOfSdk` returns the general reason `not-verified` on purpose. */
const UNMAPPED = [...MISSING_KEYS, ...OTHER_THAN_TOKEN];

const unmapped = (reasons: readonly string[]) =>
  reasons
    .filter((reason) => reasonOfSdk(reason) === 'not-verified')
    .filter((reason) => !UNMAPPED.includes(reason));

test('Each value of TokenVerificationErrorReason maps to a specific reason of the service, or to not-verified on purpose', () => {
  const reasons = Object.values(TokenVerificationErrorReason);
  expect(reasons).toContain('token-expired');
  expect(unmapped(reasons)).toEqual([]);
});

test('Each value of AuthErrorReason maps to a specific reason of the service, or to not-verified on purpose', () => {
  const reasons = authErrorReasons();
  expect(reasons).toContain('session-token-expired');
  expect(unmapped(reasons)).toEqual([]);
});

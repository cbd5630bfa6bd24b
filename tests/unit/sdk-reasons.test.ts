import { readFileSync } from 'node:fs';
import { TokenVerificationErrorReason } from '@clerk/backend/errors';
import { expect, test } from 'vitest';
import { UNAUTHENTICATED_REASONS } from '#lib/errors/unauthenticated-reason';
import { reasonOfSdk, SDK_REASONS } from '#lib/idp/sdk-reasons';
import { authErrorReasons, MISSING_KEYS, OTHER_THAN_TOKEN } from '../sdk/reasons';

/** Reasons that only later versions of the SDK report and that the service already maps. */
const LATER = ['token-invalid-issuer'];

test('Each reason for which the SDK rejects a token maps to a reason of the service, except the reasons of a missing signing key', () => {
  const reasons = Object.values(TokenVerificationErrorReason);
  expect(reasons.length).toBeGreaterThan(MISSING_KEYS.length);
  const unmapped = reasons.filter((reason) => reasonOfSdk(reason) === 'not-verified');
  expect(unmapped.toSorted()).toEqual(MISSING_KEYS.toSorted());
});

test('Each reason for which the SDK finds no session maps to a reason of the service or is unmapped on purpose', () => {
  const reasons = authErrorReasons();
  expect(reasons).toContain('session-token-expired');
  const unmapped = reasons.filter((reason) => reasonOfSdk(reason) === 'not-verified');
  expect(unmapped.toSorted()).toEqual(OTHER_THAN_TOKEN.toSorted());
});

test('Each mapped reason exists in the installed SDK or is in LATER, and the reason in LATER maps to wrong-key', () => {
  const known = [...Object.values(TokenVerificationErrorReason), ...authErrorReasons(), ...LATER];
  expect(SDK_REASONS.filter((reason) => !known.includes(reason))).toEqual([]);
  expect(LATER.map(reasonOfSdk)).toEqual(['wrong-key']);
});

test('Each mapped reason of the SDK becomes a reason of the service that is not `not-verified`', () => {
  const reasons = UNAUTHENTICATED_REASONS.filter((reason) => reason !== 'not-verified');
  expect(SDK_REASONS).toContain('token-invalid');
  expect(SDK_REASONS.filter((reason) => !reasons.some((each) => each === reasonOfSdk(reason)))).toEqual([]);
});

test('The reason of an expired session does not depend on why the SDK did not renew it', () => {
  for (const suffix of ['', '-refresh-', '-refresh-non-eligible-no-refresh-cookie'])
    expect(reasonOfSdk(`session-token-expired${suffix}`)).toBe('expired');
});

test.each(['', 'a-word-of-a-later-version', '__proto__'])(
  'reasonOfSdk() returns not-verified for an unknown reason of the SDK: %j',
  (reason) => {
    expect(reasonOfSdk(reason)).toBe('not-verified');
  },
);

test('docs/troubleshooting.md lists the reasons of a 401 in the order of UNAUTHENTICATED_REASONS', () => {
  const [, table = ''] = readFileSync('docs/troubleshooting.md', 'utf8').split('| `reason` |');
  const rows = [...(table.split('\n\n')[0] ?? '').matchAll(/^\| `([a-z-]+)` \|/gm)].map(
    ([, reason]) => reason,
  );
  expect(rows).toEqual(UNAUTHENTICATED_REASONS);
});

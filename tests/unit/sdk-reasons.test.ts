import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { TokenVerificationErrorReason } from '@clerk/backend/errors';
import { expect, test } from 'vitest';
import { UNAUTHENTICATED_REASONS } from '#lib/errors/unauthenticated-reason';
import { reasonOfSdk, SDK_REASONS } from '#lib/idp/sdk-reasons';

/** The SDK could not verify the token because it could not get the provider's keys. */
const NO_KEYS = [
  TokenVerificationErrorReason.InvalidSecretKey,
  TokenVerificationErrorReason.LocalJWKMissing,
  TokenVerificationErrorReason.RemoteJWKFailedToLoad,
  TokenVerificationErrorReason.RemoteJWKInvalid,
  TokenVerificationErrorReason.RemoteJWKMissing,
  TokenVerificationErrorReason.JWKFailedToResolve,
];

/** Values of AuthErrorReason that are not mapped on purpose, because they do not describe a session token. */
const UNMAPPED = {
  'only pages are part of a handshake': [
    'active-organization-mismatch',
    'dev-browser-sync',
    'primary-domain-cross-origin-sync',
    'primary-responds-to-syncing',
    'satellite-needs-syncing',
    'session-token-missing',
  ],
  'an error of the SDK itself': ['unexpected-error'],
};

/** Reasons of later versions of the SDK, which are mapped already. */
const LATER = ['token-invalid-issuer'];

/** Returns the values of AuthErrorReason from the installed SDK's declarations, because the SDK does not export it. */
function authErrorReasons(): string[] {
  const folder = path.dirname(createRequire(import.meta.url).resolve('@clerk/backend'));
  const declarations = readFileSync(path.join(folder, 'tokens/authStatus.d.ts'), 'utf8');
  const [, values = ''] = /const AuthErrorReason: \{([^}]+)\}/.exec(declarations) ?? [];
  return [...values.matchAll(/: "([^"]+)"/g)].flatMap(([, value]) => value ?? []);
}

test('Each reason for which the SDK rejects a token maps to a reason of the service, except missing keys', () => {
  const reasons = Object.values(TokenVerificationErrorReason);
  expect(reasons.length).toBeGreaterThan(NO_KEYS.length);
  const unmapped = reasons.filter((reason) => reasonOfSdk(reason) === 'not-verified');
  expect(unmapped.toSorted()).toEqual(NO_KEYS.toSorted());
});

test('Each reason for which the SDK finds no session maps to a reason of the service or is unmapped on purpose', () => {
  const reasons = authErrorReasons();
  expect(reasons).toContain('session-token-expired');
  const unmapped = reasons.filter((reason) => reasonOfSdk(reason) === 'not-verified');
  expect(unmapped.toSorted()).toEqual(Object.values(UNMAPPED).flat().toSorted());
});

test('Each mapped reason is one of the installed SDK, or one that is listed here as later', () => {
  const known = [...Object.values(TokenVerificationErrorReason), ...authErrorReasons(), ...LATER];
  expect(SDK_REASONS.filter((reason) => !known.includes(reason))).toEqual([]);
  expect(LATER.map(reasonOfSdk)).toEqual(['wrong-key']);
});

test.each(['', 'a-word-of-a-later-version', '__proto__'])(
  'An unknown reason is "not-verified": %j',
  (reason) => {
    expect(reasonOfSdk(reason)).toBe('not-verified');
  },
);

test('docs/troubleshooting.md has a remedy for each reason, in the same order', () => {
  const [, table = ''] = readFileSync('docs/troubleshooting.md', 'utf8').split('| `reason` |');
  const rows = [...(table.split('\n\n')[0] ?? '').matchAll(/^\| `([a-z-]+)` \|/gm)].map(
    ([, reason]) => reason,
  );
  expect(rows).toEqual(UNAUTHENTICATED_REASONS);
});

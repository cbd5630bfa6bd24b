import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { TokenVerificationErrorReason } from '@clerk/backend/errors';
import { expect, test } from 'vitest';
import { reasonOfSdk } from '#lib/idp/sdk-reasons';

/** Reasons of the SDK that are unmapped on purpose, so the log says `not-verified`. */
const UNMAPPED = {
  'the SDK could not get the keys of the provider': [
    'jwk-failed-to-resolve',
    'jwk-local-missing',
    'jwk-remote-failed-to-load',
    'jwk-remote-invalid',
    'jwk-remote-missing',
    'secret-key-invalid',
  ],
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

/** Returns the values of AuthErrorReason from the SDK's declarations, because the SDK does not export it. */
function authErrorReasons(): string[] {
  const folder = path.dirname(createRequire(import.meta.url).resolve('@clerk/backend'));
  const declarations = readFileSync(path.join(folder, 'tokens/authStatus.d.ts'), 'utf8');
  const [, values = ''] = /const AuthErrorReason: \{([^}]+)\}/.exec(declarations) ?? [];
  return [...values.matchAll(/: "([^"]+)"/g)].flatMap(([, value]) => value ?? []);
}

const unmapped = (reasons: readonly string[]) =>
  reasons
    .filter((reason) => reasonOfSdk(reason) === 'not-verified')
    .filter((reason) => !Object.values(UNMAPPED).flat().includes(reason));

test('Each value of TokenVerificationErrorReason has a reason of ours or is unmapped on purpose', () => {
  const reasons = Object.values(TokenVerificationErrorReason);
  expect(reasons).toContain('token-expired');
  expect(unmapped(reasons)).toEqual([]);
});

test('Each value of AuthErrorReason has a reason of ours or is unmapped on purpose', () => {
  const reasons = authErrorReasons();
  expect(reasons).toContain('session-token-expired');
  expect(unmapped(reasons)).toEqual([]);
});

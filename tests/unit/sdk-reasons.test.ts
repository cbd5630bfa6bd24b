import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { TokenVerificationErrorReason } from '@clerk/backend/errors';
import { expect, test } from 'vitest';
import { UNAUTHENTICATED_REASONS } from '#lib/errors/unauthenticated-reason';
import { reasonOfSdk, SDK_REASONS } from '#lib/idp/sdk-reasons';

// The provider's SDK (@clerk/backend) reports why a request has no session. The service maps this reason to one of its own
// reasons, which the log contains. A reason of the SDK that the service does not map becomes `not-verified`.

/** Error reasons that the SDK reports if it cannot verify a token because it could not get the provider's keys. */
const MISSING_KEYS = [
  'jwk-failed-to-resolve',
  'jwk-local-missing',
  'jwk-remote-failed-to-load',
  'jwk-remote-invalid',
  'jwk-remote-missing',
  'secret-key-invalid',
];

/**
 * Reasons of the SDK that do not describe an error of a session token. They describe an unexpected error of the SDK, or the
 * start or end of a handshake, which renews a session by redirects through the provider. `session-token-missing` is the reason
 * if a handshake returns no session token. The service does not need its own reasons for handshakes. It logs its reasons, such
 * as `expired`, only for API requests, which never start a handshake.
 */
const OTHER_THAN_TOKEN = [
  'active-organization-mismatch',
  'dev-browser-sync',
  'primary-domain-cross-origin-sync',
  'primary-responds-to-syncing',
  'satellite-needs-syncing',
  'session-token-missing',
  'unexpected-error',
];

/**
 * Returns the values of the SDK's constant AuthErrorReason. Reads the type declarations of the installed SDK, because the SDK
 * does not the constant.
 */
function authErrorReasons(): string[] {
  const folder = path.dirname(createRequire(import.meta.url).resolve('@clerk/backend'));
  const declarations = readFileSync(path.join(folder, 'tokens/authStatus.d.ts'), 'utf8');
  const [, values = ''] = /const AuthErrorReason: \{([^}]+)\}/.exec(declarations) ?? [];
  return [...values.matchAll(/: "([^"]+)"/g)].flatMap(([, value]) => value ?? []);
}

/** Reasons that only later versions of the SDK report and that the service already maps. */
const LATER = ['token-invalid-issuer'];

test('Each reason for which the SDK rejects a token becomes a more specific reason than `not-verified`, except the reasons of a missing signing key', () => {
  const reasons = Object.values(TokenVerificationErrorReason);
  expect(reasons.length).toBeGreaterThan(MISSING_KEYS.length);
  const unmapped = reasons.filter((reason) => reasonOfSdk(reason) === 'not-verified');
  expect(unmapped.toSorted()).toEqual(MISSING_KEYS.toSorted());
});

test('Each reason for which the SDK finds no session becomes a more specific reason than `not-verified`, except the reasons that do not concern a session token (OTHER_THAN_TOKEN)', () => {
  const reasons = authErrorReasons();
  expect(reasons).toContain('session-token-expired');
  const unmapped = reasons.filter((reason) => reasonOfSdk(reason) === 'not-verified');
  expect(unmapped.toSorted()).toEqual(OTHER_THAN_TOKEN.toSorted());
});

test('The service maps only reasons of the installed SDK and one reason of a later version (LATER), which becomes `wrong-key`', () => {
  const known = [...Object.values(TokenVerificationErrorReason), ...authErrorReasons(), ...LATER];
  expect(SDK_REASONS.filter((reason) => !known.includes(reason))).toEqual([]);
  expect(LATER.map(reasonOfSdk)).toEqual(['wrong-key']);
});

test('Each reason of the SDK that the service maps becomes a reason that is more specific than `not-verified`', () => {
  const reasons = UNAUTHENTICATED_REASONS.filter((reason) => reason !== 'not-verified');
  expect(SDK_REASONS).toContain('token-invalid');
  expect(SDK_REASONS.filter((reason) => !reasons.some((each) => each === reasonOfSdk(reason)))).toEqual([]);
});

test('reasonOfSdk() returns expired for an expired session, even if the SDK also reports why it did not renew the session', () => {
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

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

/** Error reasons that the SDK reports if it cannot verify a token because it could not get the provider's keys. */
export const MISSING_KEYS = [
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
export const OTHER_THAN_TOKEN = [
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
 * does not export the constant.
 */
export function authErrorReasons(): string[] {
  const folder = path.dirname(createRequire(import.meta.url).resolve('@clerk/backend'));
  const declarations = readFileSync(path.join(folder, 'tokens/authStatus.d.ts'), 'utf8');
  const [, values = ''] = /const AuthErrorReason: \{([^}]+)\}/.exec(declarations) ?? [];
  return [...values.matchAll(/: "([^"]+)"/g)].flatMap(([, value]) => value ?? []);
}

import { createHmac, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import type { Emulator } from '../emulator';

/** Overrides for the signature of a token: fields of its header, or another key. */
export interface Signing {
  readonly header?: Record<string, unknown>;
  readonly privateKeyPem?: string;
}

/** Generates a key pair in PEM. The emulator does not use this pair, so an application must reject tokens signed with it. */
export const foreignKeys = () =>
  generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/**
 * Returns a token with exactly these claims. The algorithm in the header determines the signature:
 * - `RS256`: signed with `privateKeyPem`. Default: the private key of the emulator.
 * - `none`: not signed.
 * - `HS256`: signed with the public key of the emulator as the secret (an algorithm confusion attack).
 *
 * Throws for any other algorithm.
 */
export function signToken(
  { signingKey }: Pick<Emulator, 'signingKey'>,
  claims: Record<string, unknown>,
  { header: fields, privateKeyPem }: Signing = {},
): string {
  const header = { alg: 'RS256', typ: 'JWT', kid: signingKey.kid, ...fields };
  const text = `${base64url(header)}.${base64url(claims)}`;
  const privateKey = privateKeyPem ? createPrivateKey(privateKeyPem) : signingKey.privateKey;
  const signature = () => {
    if (header.alg === 'none') return '';
    if (header.alg === 'HS256') return createHmac('sha256', signingKey.publicKeyPem).update(text).digest();
    if (header.alg === 'RS256') return sign('RSA-SHA256', Buffer.from(text), privateKey);
    throw new Error(`Unsupported algorithm: ${header.alg}`);
  };
  return `${text}.${Buffer.from(signature()).toString('base64url')}`;
}

import { createHmac, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import type { Emulator } from '../emulator';

/** Overrides for the signature of a token: fields of its header, or another key. */
export interface Signing {
  readonly header?: Record<string, unknown>;
  readonly privateKeyPem?: string;
}

/** Generates a key pair in PEM. The key is not a key of the emulator, so an application must reject signatures by this key. */
export const foreignKeys = () =>
  generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/**
 * Returns a token with exactly these claims, signed by the algorithm of its header:
 * - `RS256`: signed with `privateKeyPem` or the key of the instance.
 * - `none`: not signed.
 * - `HS256`: signed with the public key as the secret (an algorithm confusion attack).
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

import { createHmac, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import type { Emulator } from '../emulator';

/** Differences from the provider's signature: header fields and another key. */
export interface Signing {
  readonly header?: Record<string, unknown>;
  readonly privateKeyPem?: string;
}

/** Returns a key pair that does not belong to the instance, as PEM. */
export const foreignKeys = () =>
  generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/**
 * Returns a token with exactly these claims, as an attacker could send it. The algorithm in the header selects the signature:
 * `RS256` signs with `privateKeyPem` or the key of the instance, `none` does not sign, and `HS256` signs with the public key as
 * the secret (algorithm confusion). Throws for any other algorithm.
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

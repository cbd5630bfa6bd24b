import { createHmac, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import type { Emulator } from '../emulator';

/** How a token is signed where not as the provider would: other fields of its header, another key. */
export interface Signing {
  readonly header?: Record<string, unknown>;
  readonly privateKeyPem?: string;
}

/** The keys of somebody else, as PEM. */
export const foreignKeys = () =>
  generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/**
 * A token with exactly these claims, signed as its header says: by RSA with `privateKeyPem` or the instance's own
 * key; for `none` not at all; for `HS256` with the public key as the secret, which is the classic confusion of
 * algorithms. The provider signs no such thing: these are what an attacker would send, or who has stolen its key.
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
    throw new Error(`No token can be signed with the algorithm ${header.alg}`);
  };
  return `${text}.${Buffer.from(signature()).toString('base64url')}`;
}

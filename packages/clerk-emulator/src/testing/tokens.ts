import { createPrivateKey, createSecretKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { Emulator } from '../emulator';
import { signJwt } from '../instance/jwt';

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
  { header = {}, privateKeyPem }: Signing = {},
): string {
  const { alg = 'RS256' } = header;
  const sign = (privateKey: KeyObject, algorithm: 'HS256' | 'RS256') =>
    signJwt({ kid: signingKey.kid, privateKey }, claims, header, algorithm);
  if (alg === 'HS256') return sign(createSecretKey(signingKey.publicKeyPem, 'utf8'), alg);
  const token = sign(privateKeyPem ? createPrivateKey(privateKeyPem) : signingKey.privateKey, 'RS256');
  if (alg === 'RS256') return token;
  if (alg === 'none') return token.replace(/[^.]*$/, '');
  throw new Error(`Unsupported algorithm: ${alg}`);
}

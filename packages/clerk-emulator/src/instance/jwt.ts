import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from 'node:crypto';
import { z } from 'zod';

/** The RSA key of an instance (an emulated Clerk application). It signs all tokens. */
export interface SigningKey {
  readonly privateKey: KeyObject;
  readonly publicKeyPem: string;
  /** Id of the key. The instance has the same id. */
  readonly kid: string;
  /** The public key as the JWKS endpoint returns it. */
  readonly jwk: Record<string, unknown>;
}

/** An algorithm with which the key of a token template can sign. */
export const Algorithm = z.templateLiteral([z.enum(['RS', 'HS', 'ES']), z.enum(['256', '384', '512'])]);
export type Algorithm = z.output<typeof Algorithm>;

/** Generates an RSA-2048 private key in PEM. */
export function generateSigningKeyPem(): string {
  return generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();
}

/** Derives the public key and the id, which is a hash of this key. Clerk's SDKs cache public keys by the id. */
export function signingKey(privateKeyPem: string): SigningKey {
  const privateKey = createPrivateKey(privateKeyPem);
  const publicKey = createPublicKey(privateKey);
  const publicKeyPem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const kid = `ins_${createHash('sha256').update(publicKeyPem).digest('hex').slice(0, 27)}`;
  return {
    privateKey,
    publicKeyPem,
    kid,
    jwk: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' },
  };
}

/** Returns true if a key can sign with an algorithm. */
export function isUsableKey(algorithm: Algorithm, key: string): boolean {
  try {
    return signature(algorithm, readKey(algorithm, key), '').length > 0;
  } catch {
    return false;
  }
}

/** Returns a shared secret or a private key in PEM as a key. Throws if it is not a key for the algorithm. */
export const readKey = (algorithm: Algorithm, key: string) =>
  algorithm.startsWith('HS') ? createSecretKey(key, 'utf8') : createPrivateKey(key);

/** Returns a signature of a text (RFC 7518, 3). */
function signature(algorithm: Algorithm, key: KeyObject, text: string): Buffer {
  const digest = `sha${algorithm.slice(2)}`;
  if (algorithm.startsWith('HS')) return createHmac(digest, key).update(text).digest();
  const family = algorithm.startsWith('ES') ? 'ec' : 'rsa';
  if (key.asymmetricKeyType !== family) throw new Error(`The key is not a key of the type ${family}.`);
  return sign(digest, Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' });
}

/** Returns a JSON Web Token (RFC 7519). */
export function signJwt(
  { kid, privateKey }: Pick<SigningKey, 'kid' | 'privateKey'>,
  claims: unknown,
  header: Readonly<Record<string, unknown>> = {},
  alg: Algorithm = 'RS256',
): string {
  const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${base64url({ alg, typ: 'JWT', kid, ...header })}.${base64url(claims)}`;
  return `${text}.${signature(alg, privateKey, text).toString('base64url')}`;
}

import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import type { Session } from './data';

/** The instance's RSA key, by which it signs session and handshake tokens. */
export interface SigningKey {
  readonly privateKey: KeyObject;
  readonly publicKeyPem: string;
  /** The key's id, which is the instance's id too. */
  readonly kid: string;
  /** The public half as the JWKS endpoint serves it. */
  readonly jwk: Record<string, unknown>;
}

/** The category that the provider puts in the header of a session token. */
const SESSION_TOKEN_CATEGORY = 'cl_B7d4PD111AAA';
const MINUTE = 60_000;

/** A new RSA-2048 private key in PEM. */
export function generateSigningKeyPem(): string {
  return generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();
}

/** The key in use and what is published of it. Another key has another id: the SDKs keep keys by their id. */
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

/** The public keys by which anyone verifies the instance's tokens. */
export function jwks(key: SigningKey): { keys: Record<string, unknown>[] } {
  return { keys: [key.jwk] };
}

/**
 * A token with exactly these claims, signed as its header says: by RSA with `privateKeyPem` or the
 * instance's key; for `none` not at all; for `HS256` with the public key as the secret, which is the classic
 * confusion of algorithms. The last two are what an attacker would send. Throws for any other algorithm.
 */
export function signToken(
  key: SigningKey,
  claims: Record<string, unknown>,
  options: { header?: Record<string, unknown>; privateKeyPem?: string } = {},
): string {
  const header = { alg: 'RS256', typ: 'JWT', kid: key.kid, ...options.header };
  const signed = `${base64url(header)}.${base64url(claims)}`;
  const privateKey = options.privateKeyPem ? createPrivateKey(options.privateKeyPem) : key.privateKey;
  return `${signed}.${signature(header.alg, signed, privateKey, key.publicKeyPem)}`;
}

/** A session token, version 2: what a browser shows to the application. */
export function sessionToken(
  key: SigningKey,
  session: Session,
  token: { issuer: string; seconds: number; now: number; origin: string | undefined },
): string {
  const issuedAt = Math.floor(token.now / 1000);
  const claims = {
    ...(token.origin === undefined ? {} : { azp: token.origin }),
    exp: issuedAt + token.seconds,
    fva: [Math.floor((token.now - session.createdAt) / MINUTE), -1],
    iat: issuedAt,
    iss: token.issuer,
    jti: randomBytes(10).toString('hex'),
    nbf: issuedAt - 10,
    sid: session.id,
    sts: 'active',
    sub: session.userId,
    v: 2,
  };
  return signToken(key, claims, { header: { cat: SESSION_TOKEN_CATEGORY } });
}

/** A handshake token: the cookies that the application's server is to set on the browser. */
export function handshakeToken(key: SigningKey, cookies: readonly string[]): string {
  return signToken(key, { handshake: cookies });
}

function signature(algorithm: string, text: string, privateKey: KeyObject, publicKeyPem: string): string {
  switch (algorithm) {
    case 'RS256':
    case 'RS384':
    case 'RS512':
      return sign(`RSA-SHA${algorithm.slice(2)}`, Buffer.from(text), privateKey).toString('base64url');
    case 'HS256':
      return createHmac('sha256', publicKeyPem).update(text).digest('base64url');
    case 'none':
      return '';
    default:
      throw new Error(`No token can be signed with the algorithm ${algorithm}`);
  }
}

function base64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';

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

/** A session token, version 2: what a browser shows to the application. */
export function sessionToken(
  key: SigningKey,
  session: { readonly id: string; readonly userId: string; readonly createdAt: number },
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
  return signed(key, claims, { cat: SESSION_TOKEN_CATEGORY });
}

/** A handshake token: the cookies that the application's server is to set on the browser. */
export function handshakeToken(key: SigningKey, cookies: readonly string[]): string {
  return signed(key, { handshake: cookies });
}

function signed(
  { kid, privateKey }: SigningKey,
  claims: unknown,
  header: Record<string, string> = {},
): string {
  const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${base64url({ alg: 'RS256', typ: 'JWT', kid, ...header })}.${base64url(claims)}`;
  return `${text}.${sign('RSA-SHA256', Buffer.from(text), privateKey).toString('base64url')}`;
}

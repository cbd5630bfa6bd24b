import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import type { Session } from './data';

/** The RSA key of an instance (an emulated Clerk application). It signs all tokens. */
export interface SigningKey {
  readonly privateKey: KeyObject;
  readonly publicKeyPem: string;
  /** Id of the key. The instance has the same id. */
  readonly kid: string;
  /** The public key as the JWKS endpoint returns it. */
  readonly jwk: Record<string, unknown>;
}

/** Value of `cat`, the category, in the header of Clerk's session tokens. */
const SESSION_TOKEN_CATEGORY = 'cl_B7d4PD111AAA';
const MINUTE = 60_000;
export const DAY_SECONDS = 24 * 60 * 60;

/** The issuer and the lifetime of a new token. */
interface Issue {
  readonly issuer: string;
  readonly now: number;
  readonly seconds: number;
}

/** Generates an RSA-2048 private key in PEM. */
export function generateSigningKeyPem(): string {
  return generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();
}

/**
 * Derives the public key and the id from a private key. The id is a hash of the public key, so that different keys have
 * different ids. Clerk's SDKs cache public keys by this id.
 */
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

/** Returns the key set that verifies the tokens of the instance. */
export function jwks(key: SigningKey): { keys: Record<string, unknown>[] } {
  return { keys: [key.jwk] };
}

/** Returns a session token in version 2 of Clerk's format. A browser sends it to the application. */
export function sessionToken(
  key: SigningKey,
  session: Pick<Session, 'id' | 'userId' | 'createdAt' | 'verifiedAt' | 'actor'>,
  token: Issue & {
    readonly origin: string | undefined;
    /** The claims about the active organization of the session. */
    readonly claims: Readonly<Record<string, unknown>> | undefined;
  },
): string {
  const claims = {
    ...(token.origin === undefined ? {} : { azp: token.origin }),
    ...(session.actor && { act: session.actor }),
    ...issueClaims(token),
    fva: factorAge(session, token.now),
    ...token.claims,
    sid: session.id,
    sts: 'active',
    sub: session.userId,
    v: 2,
  };
  return signJwt(key, claims, { cat: SESSION_TOKEN_CATEGORY });
}

/** Returns the minutes since the user was verified, and -1 because users of the emulator have no second factor. */
export function factorAge(
  { createdAt, verifiedAt = createdAt }: Pick<Session, 'createdAt' | 'verifiedAt'>,
  now: number,
) {
  return [Math.floor((now - verifiedAt) / MINUTE), -1];
}

/** What an OAuth client requests for an access token. */
export interface OAuthTokenRequest {
  /** The resource server (RFC 8707). Without it, the token has no audience. */
  readonly audience?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly clientId?: string | undefined;
}

/** Returns an OAuth access token in Clerk's JWT format (RFC 9068). */
export function oauthToken(
  key: SigningKey,
  token: Issue & { readonly userId: string },
  { audience, scopes = ['profile', 'email'], clientId = 'client_emulator' }: OAuthTokenRequest,
): string {
  const claims = {
    ...issueClaims(token),
    aud: audience,
    client_id: clientId,
    jti: `oat_${randomBytes(16).toString('hex')}`,
    scope: scopes.join(' '),
    sub: token.userId,
  };
  return signJwt(key, claims, { typ: 'at+jwt' });
}

/** Returns an id token, which informs a client about its user (OpenID Connect Core, 2). */
export function idToken(key: SigningKey, token: Issue, claims: Readonly<Record<string, unknown>>): string {
  return signJwt(key, { ...issueClaims(token), ...claims });
}

/** Returns a handshake token. It contains the cookies that the application's server sets in the browser. */
export function handshakeToken(key: SigningKey, cookies: readonly string[]): string {
  return signJwt(key, { handshake: cookies });
}

/** Returns a secret token for the client of a native app. It is a JWT, because the SDK for Flutter verifies its signature. */
export function nativeToken(key: SigningKey, clientId: string): string {
  return signJwt(key, { id: clientId, rotating_token: randomBytes(20).toString('hex') });
}

function issueClaims({ issuer, now, seconds }: Issue) {
  const iat = Math.floor(now / 1000);
  return { exp: iat + seconds, iat, iss: issuer, jti: randomBytes(10).toString('hex'), nbf: iat - 10 };
}

function signJwt(
  { kid, privateKey }: SigningKey,
  claims: unknown,
  header: Record<string, string> = {},
): string {
  const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${base64url({ alg: 'RS256', typ: 'JWT', kid, ...header })}.${base64url(claims)}`;
  return `${text}.${sign('RSA-SHA256', Buffer.from(text), privateKey).toString('base64url')}`;
}

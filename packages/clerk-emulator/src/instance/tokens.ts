import { randomBytes } from 'node:crypto';
import type { Session } from './data';
import { type Algorithm, readKey, type SigningKey, signJwt } from './jwt';

/** Values of `cat`, the category, in the header of Clerk's tokens. */
const SESSION_TOKEN_CATEGORY = 'cl_B7d4PD111AAA';
const TEMPLATE_TOKEN_CATEGORY = 'cl_B7d4PD222AAA';
const MINUTE = 60_000;
export const DAY_SECONDS = 24 * 60 * 60;

/** The issuer and the lifetime of a new token. */
interface Issue {
  readonly issuer: string;
  readonly now: number;
  readonly seconds: number;
}

/** Returns a session token in version 2 of Clerk's format. A browser sends it to the application. */
export function sessionToken(
  key: SigningKey,
  session: Pick<Session, 'id' | 'userId' | 'createdAt' | 'verifiedAt' | 'actor'>,
  token: Issue & {
    readonly origin: string | undefined;
    readonly status: 'active' | 'pending';
    /** The custom claims, and those about the active organization of the session. */
    readonly claims: Readonly<Record<string, unknown>>;
  },
): string {
  const claims = {
    ...token.claims,
    ...(token.origin === undefined ? {} : { azp: token.origin }),
    ...(session.actor && { act: session.actor }),
    ...issueClaims(token),
    fva: factorAge(session, token.now),
    sid: session.id,
    sts: token.status,
    sub: session.userId,
    v: 2,
  };
  return signJwt(key, claims, { cat: SESSION_TOKEN_CATEGORY });
}

/** Returns a token of a template. It has the claims of the template, but `exp`, `iat`, `iss`, `jti`, `nbf` and `sub` are Clerk's. */
export function templateToken(
  key: SigningKey,
  userId: string,
  token: Issue & {
    readonly origin: string | undefined;
    readonly claims: Readonly<Record<string, unknown>>;
    /** Seconds by which the token is valid earlier. */
    readonly skew: number;
    /** The key of the template. Without one, the key of the instance signs. */
    readonly own: { readonly algorithm: Algorithm; readonly key: string } | undefined;
  },
): string {
  const issued = issueClaims(token);
  const claims = {
    ...(token.origin === undefined ? {} : { azp: token.origin }),
    ...token.claims,
    ...issued,
    nbf: issued.iat - token.skew,
    sub: userId,
  };
  const header = { cat: TEMPLATE_TOKEN_CATEGORY };
  if (token.own === undefined) return signJwt(key, claims, header);
  const { algorithm } = token.own;
  return signJwt({ kid: key.kid, privateKey: readKey(algorithm, token.own.key) }, claims, header, algorithm);
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

import { randomBytes } from 'node:crypto';
import type { Session } from './data';
import { type SigningKey, signJwt } from './jwt';

const MINUTE = 60_000;
export const DAY_SECONDS = 24 * 60 * 60;

/** The issuer and the lifetime of a new token. */
interface Issue {
  readonly issuer: string;
  readonly now: number;
  readonly seconds: number;
}

/** Returns the minutes since the user was verified, and -1 because users of the emulator have no second factor. */
export function factorAge(
  { createdAt, verifiedAt = createdAt }: Pick<Session, 'createdAt' | 'verifiedAt'>,
  now: number,
) {
  return [Math.floor((now - verifiedAt) / MINUTE), -1];
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

/** Returns the claims that most tokens share. */
export function issueClaims({ issuer, now, seconds }: Issue) {
  const iat = Math.floor(now / 1000);
  return { exp: iat + seconds, iat, iss: issuer, jti: randomBytes(10).toString('hex'), nbf: iat - 10 };
}

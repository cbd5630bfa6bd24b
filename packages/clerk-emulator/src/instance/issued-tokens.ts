import { randomBytes } from 'node:crypto';
import { requireUser } from './accounts';
import type { Session } from './data';
import type { Instance } from './instance';
import { readKey, signJwt } from './jwt';
import { organizationClaims } from './organization-resources';
import { sessionStatus } from './resources';
import { fillClaims, requireTokenTemplate } from './token-templates';

/** Values of `cat`, the category, in the header of Clerk's tokens. */
const SESSION_TOKEN_CATEGORY = 'cl_B7d4PD111AAA';
const TEMPLATE_TOKEN_CATEGORY = 'cl_B7d4PD222AAA';

/** Returns the claims that most tokens share. */
export function issueClaims(iss: string, now: number, seconds: number) {
  const iat = Math.floor(now / 1000);
  return { exp: iat + seconds, iat, iss, jti: randomBytes(10).toString('hex'), nbf: iat - 10 };
}

/** Returns the minutes since the user was verified, and -1 because users of the emulator have no second factor. */
export function factorAge({ createdAt, verifiedAt = createdAt }: Session, now: number) {
  return [Math.floor((now - verifiedAt) / 60_000), -1];
}

interface Request {
  /** Origin of the application for which the token is issued. */
  readonly origin?: string | undefined;
  /** Lifetime of the token. Default: that of the template or of the instance. */
  readonly seconds?: number | undefined;
  /** An organization of the user's instead of the active one of the session. */
  readonly organizationId?: string | null;
  /** Name of a token template. The token then has the claims of the template. */
  readonly template?: string | undefined;
}

/**
 * Returns a new token for a session, in version 2 of Clerk's format or with the claims of a template. `exp`, `iat`, `iss`, `jti`,
 * `nbf` and `sub` are Clerk's in both. Throws a 404 for an unknown template.
 */
export function issueToken(instance: Instance, session: Session, request: Request = {}): string {
  const { origin, organizationId = session.organizationId } = request;
  const { store, settings, signingKey } = instance;
  const membership = store.memberships.find(
    (each) => each.organizationId === organizationId && each.userId === session.userId,
  );
  const template =
    request.template === undefined ? undefined : requireTokenTemplate(instance, request.template);
  const now = instance.clock.now();
  const seconds = request.seconds ?? template?.lifetime ?? settings.sessionTokenSeconds;
  const issued = issueClaims(instance.publishableKey.issuer, now, seconds);
  const custom = fillClaims(instance, template?.claims ?? settings.sessionClaims, session, membership);
  const sub = session.userId;
  if (template === undefined) {
    const claims = {
      ...custom,
      ...(membership && organizationClaims(instance, membership)),
      azp: origin,
      act: session.actor,
      ...issued,
      fva: factorAge(session, now),
      sid: session.id,
      sts: sessionStatus(instance, { ...session, organizationId }) === 'pending' ? 'pending' : 'active',
      sub,
      v: 2,
    };
    return signJwt(signingKey, claims, { cat: SESSION_TOKEN_CATEGORY });
  }
  const claims = { azp: origin, ...custom, ...issued, nbf: issued.iat - template.allowed_clock_skew, sub };
  const header = { cat: TEMPLATE_TOKEN_CATEGORY };
  if (!template.custom_signing_key) return signJwt(signingKey, claims, header);
  const { signing_algorithm: algorithm, signing_key: key } = template;
  const own = { kid: signingKey.kid, privateKey: readKey(algorithm, key ?? '') };
  return signJwt(own, claims, header, algorithm);
}

/** What an OAuth client requests for an access token. */
export interface OAuthTokenRequest {
  /** The resource server (RFC 8707). Without it, the token has no audience. */
  readonly audience?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly clientId?: string | undefined;
}

/**
 * Returns an OAuth access token in Clerk's JWT format (RFC 9068), with which a client acts for a user. Throws a 404 for an unknown
 * id.
 */
export function issueOAuthToken(
  instance: Instance,
  { issuer, userId }: { readonly issuer: string; readonly userId: string },
  { audience, scopes = ['profile', 'email'], clientId = 'client_emulator' }: OAuthTokenRequest,
): string {
  const { clock, oauth, signingKey } = instance;
  const claims = {
    ...issueClaims(issuer, clock.now(), oauth.accessTokenSeconds),
    aud: audience,
    client_id: clientId,
    jti: `oat_${randomBytes(16).toString('hex')}`,
    scope: scopes.join(' '),
    sub: requireUser(instance, userId).id,
  };
  return signJwt(signingKey, claims, { typ: 'at+jwt' });
}

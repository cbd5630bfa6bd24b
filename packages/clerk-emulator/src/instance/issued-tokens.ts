import { requireUser, sessionTasks } from './accounts';
import type { Session } from './data';
import type { Instance } from './instance';
import { organizationClaims } from './organization-resources';
import { fillClaims, requireTokenTemplate } from './token-templates';
import { type OAuthTokenRequest, oauthToken, sessionToken, templateToken } from './tokens';

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

/** Returns a new token for a session. Throws a 404 for an unknown template. */
export function issueToken(instance: Instance, session: Session, request: Request = {}): string {
  const { origin, template: name, organizationId = session.organizationId } = request;
  const { store, settings, signingKey } = instance;
  const membership = store.memberships.find(
    (each) => each.organizationId === organizationId && each.userId === session.userId,
  );
  const issue = {
    issuer: instance.publishableKey.issuer,
    now: instance.clock.now(),
    origin,
    seconds: request.seconds ?? settings.sessionTokenSeconds,
  };
  if (name === undefined) {
    const custom = fillClaims(instance, settings.sessionClaims, session, membership);
    const claims = { ...custom, ...(membership && organizationClaims(instance, membership)) };
    const status = sessionTasks(instance, { ...session, organizationId }) ? 'pending' : 'active';
    return sessionToken(signingKey, session, { ...issue, status, claims });
  }
  const template = requireTokenTemplate(instance, name);
  const claims = fillClaims(instance, template.claims, session, membership);
  const seconds = request.seconds ?? template.lifetime;
  const skew = template.allowed_clock_skew;
  const own = template.custom_signing_key
    ? { algorithm: template.signing_algorithm, key: template.signing_key ?? '' }
    : undefined;
  return templateToken(signingKey, session.userId, { ...issue, seconds, skew, claims, own });
}

/** Returns an OAuth access token, with which a client acts for a user. Throws a 404 for an unknown id. */
export function issueOAuthToken(
  instance: Instance,
  token: { readonly issuer: string; readonly userId: string },
  request: OAuthTokenRequest,
): string {
  requireUser(instance, token.userId);
  const { clock, oauth, signingKey } = instance;
  return oauthToken(signingKey, { ...token, now: clock.now(), seconds: oauth.accessTokenSeconds }, request);
}

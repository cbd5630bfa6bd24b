import type { AuthenticatedContext } from './api/schemas';
import { environment } from './base/env';
import { type GuardedHandler, guardBy, resolveUser, type Verdict } from './guard';
import { HttpError } from './http/error';
import type { RouteContext, RouteHandler } from './http/route';

/** The authenticated user of a request. With an access token, also the OAuth client that acts for the user, and its scopes. */
export interface OAuthContext extends AuthenticatedContext {
  readonly clientId?: string;
  readonly scopes?: readonly string[];
}

/** Returns the address of the metadata of a protected resource (RFC 9728, 3.1). */
export const metadataUrl = (resource: string): URL =>
  new URL(`/.well-known/oauth-protected-resource${new URL(resource).pathname.replace(/\/$/, '')}`, resource);

/** Returns an error whose response has a challenge (RFC 6750, 3, and RFC 9728, 5.1). */
function challenge(status: 401 | 403, error: string, scopes: readonly string[]): HttpError {
  const { IDP_OAUTH_AUDIENCE: resource } = environment();
  const metadata = resource === undefined ? '' : metadataUrl(resource).href;
  const parameters = Object.entries({ error, scope: scopes.join(' '), resource_metadata: metadata })
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}="${value}"`);
  return new HttpError(status, status === 401 ? 'Unauthorized' : 'Forbidden', {
    'www-authenticate': `Bearer ${parameters.join(', ')}`.trim(),
  });
}

async function contextOf(verdict: Verdict, required: readonly string[]): Promise<OAuthContext | undefined> {
  const { accessToken } = verdict;
  if (accessToken === undefined) return resolveUser(verdict);
  const { user, clientId, scopes } = accessToken;
  if (!required.every((scope) => scopes.includes(scope)))
    throw challenge(403, 'insufficient_scope', required);
  // Without an issue time, the token does not link a forgotten user again.
  const context = await resolveUser({ user });
  return context && Object.freeze({ ...context, clientId, scopes });
}

/**
 * Creates a route like `guard`, which also accepts an OAuth access token of a user. The provider must have issued the token for
 * the audience IDP_OAUTH_AUDIENCE, and the token must have all `scopes`. Scopes do not apply to a session.
 *
 * Without a session or a valid token, the response is a 401. If the token lacks a scope, it is a 403. Both have a
 * `WWW-Authenticate` header, which leads a client to the provider.
 */
export const guardOAuth = <C extends RouteContext>(
  handler: GuardedHandler<OAuthContext, C>,
  { scopes }: { readonly scopes: readonly string[] },
): RouteHandler<C> =>
  guardBy(async (verdict) => {
    const context = await contextOf(verdict, scopes);
    if (context) return context;
    throw challenge(401, verdict.reason === 'no-credential' ? '' : 'invalid_token', scopes);
  }, handler);

import type { ApiResponse } from '../http';
import { activeSessions, issueToken } from '../instance/accounts';
import { ApiError } from '../instance/error';
import type { Instance } from '../instance/instance';
import { handshakeToken } from '../instance/tokens';
import {
  type BrowserRequest,
  clientUpdatedAt,
  cookieAttributes,
  isTrustedOrigin,
  newClient,
  suffixed,
} from './browser';

/**
 * Sends a browser back to the page it came for, with cookies that say who is signed in now: set directly by
 * a production instance, and by a token in the query in development, where the application's server sets
 * them. Throws a 400 for a page that is not of this machine or of the application that proxies: the token in
 * its address would give the session away.
 */
export function handshake(instance: Instance, request: BrowserRequest): ApiResponse {
  const { browser, url } = request;
  const target = url.searchParams.get('redirect_url') ?? '';
  const page = URL.canParse(target) ? new URL(target) : undefined;
  if (
    page === undefined ||
    !/^https?:$/.test(page.protocol) ||
    !isTrustedOrigin(instance, request, page.origin)
  ) {
    throw new ApiError(400, 'url_invalid', 'redirect_url is no page of this application.', 'redirect_url');
  }
  const { development } = instance.publishableKey;
  const client = browser.client ?? (development ? newClient(instance) : undefined);
  const session = client && activeSessions(instance, client.id).at(-1);
  const token = session ? issueToken(instance, session, page) : '';

  const lasting = cookieAttributes(browser);
  const cookies = [
    ...suffixed(instance, '__session').map((name) =>
      token === '' ? `${name}=; Path=/; SameSite=Lax; Max-Age=0` : `${name}=${token}; ${lasting}`,
    ),
    ...suffixed(instance, '__client_uat').map(
      (name) => `${name}=${clientUpdatedAt(instance, client)}; ${lasting}`,
    ),
    ...(development && client
      ? suffixed(instance, '__clerk_db_jwt').map((name) => `${name}=${client.token}; ${lasting}`)
      : []),
  ];
  if (!development) return { status: 307, headers: { location: page.href }, cookies };
  page.searchParams.set('__clerk_handshake', handshakeToken(instance.signingKey, cookies));
  return { status: 307, headers: { location: page.href } };
}

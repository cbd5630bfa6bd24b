import type { ApiResponse } from '../http';
import { activeSessions } from '../instance/accounts';
import type { Client } from '../instance/data';
import { HANDSHAKE_SECONDS } from '../instance/handshakes';
import type { Instance } from '../instance/instance';
import { issueToken } from '../instance/issued-tokens';
import { signJwt } from '../instance/jwt';
import { findOwnOrganization } from '../instance/organizations';
import {
  type Browser,
  type BrowserRequest,
  newClient,
  persistentCookies,
  requireOwnPage,
  updateCookies,
} from './browser';

/** API version of the first SDK that supports nonces in a development instance. */
const FIRST_VERSION_WITH_NONCE = '2025-11-10';

/**
 * Serves a handshake: redirects a browser back to its page and passes session cookies to the application's server. The server
 * sets these cookies in the browser. The redirect contains a signed token with the cookies. If the SDK requests a nonce and the
 * settings allow it, the redirect contains a nonce instead. The server exchanges the nonce for the cookies through the Backend
 * API. A production instance sends the token or the nonce in a cookie, and a development instance sends it in the query.
 *
 * Throws a 400 unless the page is on this machine or belongs to the application that proxies the Frontend API. The redirect
 * gives the page access to the session, so the redirect must not lead to any other page.
 */
export function handshake(instance: Instance, request: BrowserRequest): ApiResponse {
  const { browser, url } = request;
  const page = requireOwnPage(instance, request, url.searchParams.get('redirect_url') ?? '');
  const { development } = instance.publishableKey;
  const client = browser.client ?? (development ? newClient(instance, request) : undefined);
  activateOrganization(instance, client, url.searchParams.get('organization_id'));
  const cookies = sessionCookies(instance, browser, client, page);
  const { format } = instance.handshakes.settings;
  // In a development instance, an older SDK does not remove the nonce from the query and would redirect forever.
  const version = url.searchParams.get('__clerk_api_version') ?? FIRST_VERSION_WITH_NONCE;
  const isSupported = !development || version >= FIRST_VERSION_WITH_NONCE;
  const byNonce = isSupported && format === 'nonce' && url.searchParams.get('format') === 'nonce';
  const name = byNonce ? '__clerk_handshake_nonce' : '__clerk_handshake';
  const all = development ? cookies : [...cookies, `${name}=; Path=/; Max-Age=0`];
  const value = byNonce ? instance.handshakes.store(all) : signJwt(instance.signingKey, { handshake: all });
  if (development) page.searchParams.set(name, value);
  const secure = page.protocol === 'https:' ? '; Secure' : '';
  const cookie = `${name}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${HANDSHAKE_SECONDS}${secure}`;
  return { status: 307, headers: { location: page.href }, cookies: development ? [] : [cookie] };
}

/** Changes the active organization of the client's session, as the SDK requests, unless the user is not a member. */
function activateOrganization(instance: Instance, client: Client | undefined, idOrSlug: string | null): void {
  const session = client && activeSessions(instance, client.id).at(-1);
  if (session === undefined || idOrSlug === null) return;
  const organizationId = findOwnOrganization(instance, session.userId, idOrSlug) ?? null;
  if (idOrSlug === '' || organizationId) instance.store.sessions.put({ ...session, organizationId });
}

/** Returns the cookies that sign the browser in. If there is no active session, returns the cookies that sign it out. */
function sessionCookies(
  instance: Instance,
  browser: Browser,
  client: Client | undefined,
  page: URL,
): string[] {
  const session = client && activeSessions(instance, client.id).at(-1);
  const origin = instance.handshakes.settings.azp ? page.origin : undefined;
  const token = session && issueToken(instance, session, { origin });
  const cookies = (name: string, value = '') => persistentCookies(instance, browser, name, value);
  return [
    ...cookies('__session', token),
    ...updateCookies(instance, browser, client),
    ...(instance.publishableKey.development && client ? cookies('__clerk_db_jwt', client.token) : []),
  ];
}

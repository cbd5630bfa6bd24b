import { parse } from 'hono/utils/cookie';
import { type ApiRequest, isLoopback } from '../http';
import { activeSession, activeSessions, requireUser } from '../instance/accounts';
import { ApiError, notFound } from '../instance/api-error';
import { Client, type Session, type SignIn, type SignUp, type User } from '../instance/data';
import { newId, newRow, randomText } from '../instance/ids';
import { type Instance, isSecretKey } from '../instance/instance';
import { signJwt } from '../instance/jwt';

/** The browser that sent a request, or a native app. A client is Clerk's record of it, and has a token. */
export interface Browser {
  /** Origin of the application. Session tokens contain it as the authorized party. */
  readonly origin: string | undefined;
  /** Current state of the browser's client, or undefined if the browser does not have a client. */
  readonly client: Client | undefined;
  /** Returns the client of the browser. Creates one if there is none. */
  establish(): Client;
}

/** A request to the Frontend API, from the browser SDK or from a browser that navigates. */
export interface BrowserRequest extends ApiRequest {
  readonly browser: Browser;
}

/** A request of a signed-in user. */
export interface UserRequest extends BrowserRequest {
  readonly session: Session;
  readonly user: User;
}

/** Maximum duration of a sign-in or sign-up, in milliseconds. */
export const ATTEMPT_LIFE = 24 * 60 * 60 * 1000;
const COOKIE_LIFE_SECONDS = 365 * 24 * 60 * 60;

/**
 * Recognizes the browser by `__clerk_db_jwt` in the query (development instance), by the `__client` cookie (production
 * instance), or by the `authorization` header (native app). Throws a 400 if the origin of the request is neither on
 * this machine nor that of the application that proxied it, because a page of another site must not act for the user.
 */
export function recognizeBrowser(instance: Instance, request: ApiRequest): Browser {
  const proxy = proxyOrigin(instance, request);
  const origin = request.headers.get('origin') ?? undefined;
  if (origin !== undefined && request.headers.has('authorization')) {
    const message =
      "For security purposes, only one of the 'Origin' and 'Authorization' headers should be provided, but not both. In browser " +
      "contexts, the 'Origin' header is set automatically by the browser. In native application contexts (e.g. mobile apps), set " +
      "the 'Authorization' header.";
    throw new ApiError(400, 'origin_authorization_headers_conflict', message);
  }
  if (origin !== undefined && origin !== proxy && !isLoopback(origin)) {
    throw new ApiError(400, 'origin_invalid', `The origin ${origin} may not use this instance.`);
  }
  const { clients } = instance.store;
  const token = readClientToken(instance, request);
  let id = clients.find((client) => client.token === token)?.id ?? '';
  return {
    origin: origin ?? proxy,
    get client() {
      return clients.get(id);
    },
    establish() {
      const established = this.client ?? newClient(instance, request);
      id = established.id;
      return established;
    },
  };
}

/** Returns the address of a page. Throws a 400 unless the page is on this machine or belongs to the application. */
export function requireOwnPage(instance: Instance, request: ApiRequest, target: string): URL {
  const page = URL.canParse(target) ? new URL(target) : undefined;
  const isOwn = page && (isLoopback(page.origin) || page.origin === proxyOrigin(instance, request));
  if (isOwn && /^https?:$/.test(page.protocol)) return page;
  throw new ApiError(400, 'url_invalid', 'redirect_url is not a page of this application.', 'redirect_url');
}

/** Creates a client for a browser or for a native app. */
export function newClient(instance: Instance, request: ApiRequest): Client {
  const row = newRow(instance, 'client');
  // The token of a native app is a JWT, because the SDK for Flutter verifies its signature.
  const native = () => signJwt(instance.signingKey, { id: row.id, rotating_token: randomText(40) });
  const token = isNative(request) ? native() : newId('dvb');
  const userAgent = request.headers.get('user-agent') ?? '';
  return instance.store.clients.put(Client.parse({ ...row, token, userAgent }));
}

/**
 * Returns headers and cookies that update the browser. A development instance sends the token of a new client in a header, and in
 * a cookie of its own host (see `readClientToken`). A production instance sends cookies with the token and with those of
 * `updateCookies`. A native app gets the token in the `authorization` header, and keeps it.
 */
export function browserState(instance: Instance, request: BrowserRequest) {
  const { browser, headers } = request;
  const { client } = browser;
  if (isNative(request)) return { headers: client ? { authorization: client.token } : {}, cookies: [] };
  const own = client ? [`__client=${client.token}; HttpOnly; ${cookieAttributes(browser)}`] : [];
  if (!instance.publishableKey.development)
    return { headers: {}, cookies: [...own, ...updateCookies(instance, browser, client)] };
  const isNew = client !== undefined && client.token !== readClientToken(instance, request);
  const cookies = headers.has('clerk-proxy-url') ? [] : own;
  return { headers: isNew ? { 'clerk-db-jwt': client.token } : {}, cookies };
}

/** Returns cookies with the time when a session of the client last started or ended, and 0 without an active session. */
export function updateCookies(instance: Instance, browser: Browser, client: Client | undefined): string[] {
  const signedIn = client !== undefined && activeSessions(instance, client.id).length > 0;
  const seconds = signedIn ? Math.floor(client.updatedAt / 1000) : 0;
  return persistentCookies(instance, browser, '__client_uat', String(seconds));
}

/** Returns a cookie under two names: without and with the suffix of the instance. The SDKs read both. No value deletes it. */
export function persistentCookies(instance: Instance, browser: Browser, name: string, value: string) {
  const names = [name, `${name}_${instance.publishableKey.cookieSuffix}`];
  const attributes = value === '' ? 'Path=/; SameSite=Lax; Max-Age=0' : cookieAttributes(browser);
  return names.map((each) => `${each}=${value}; ${attributes}`);
}

/** Returns the attributes of a persistent cookie, with `Secure` if the application uses https. */
function cookieAttributes(browser: Browser): string {
  const secure = browser.origin?.startsWith('https:') ? '; Secure' : '';
  return `Path=/; SameSite=Lax; Max-Age=${COOKIE_LIFE_SECONDS}${secure}`;
}

/** Returns a session of the browser. Throws a 404 for another one, and a 401 if it has ended or there is no client. */
export function requireOwnSession(instance: Instance, request: BrowserRequest, id: string): Session {
  const { client } = request.browser;
  if (client && instance.store.sessions.get(id)?.clientId !== client.id) throw notFound('The session');
  const session = client && activeSession(instance, id);
  if (session === undefined) throw new ApiError(401, 'signed_out', 'You are signed out.');
  return session;
}

/** Returns a sign-in or sign-up (an attempt) of this browser. Throws a 404 for another or an expired one. */
export function requireOwnAttempt<Attempt extends SignIn | SignUp>(
  instance: Instance,
  attempts: { get(id: string): Attempt | undefined },
  { id, browser }: BrowserRequest,
): Attempt {
  const attempt = attempts.get(id);
  const isOwn = browser.client !== undefined && attempt?.clientId === browser.client.id;
  if (attempt === undefined || !isOwn || attempt.abandonAt <= instance.clock.now())
    throw notFound('The attempt');
  return attempt;
}

/** Throws a 400 if the client has an active session and may have only one. */
export function requireSignedOut(instance: Instance, clientId: string): void {
  if (instance.settings.multiSession || activeSessions(instance, clientId).length === 0) return;
  throw new ApiError(400, 'session_exists', 'You are already signed in.');
}

/**
 * Returns the session in `_clerk_session_id`, or the one that was active last, and its user. Throws the errors of
 * `requireOwnSession`.
 */
export function requireSignedIn(instance: Instance, request: BrowserRequest) {
  const { client } = request.browser;
  const last = client && activeSessions(instance, client.id).at(-1);
  const id = request.url.searchParams.get('_clerk_session_id') ?? last?.id ?? '';
  const session = requireOwnSession(instance, request, id);
  return { session, user: requireUser(instance, session.userId) };
}

const isNative = ({ url }: ApiRequest) => url.searchParams.has('_is_native');

/**
 * Returns the token in the `authorization` header (native app), in the cookie (production instance) or in the query (development
 * instance). Two requests to a development instance also read the cookie. A handshake reads it so that a user is signed in on
 * each origin of an application, such as a subdomain. The form of the consent page has no token in its query.
 */
function readClientToken(instance: Instance, request: ApiRequest): string | undefined {
  const { url, headers } = request;
  if (isNative(request)) return headers.get('authorization') ?? undefined;
  const { development } = instance.publishableKey;
  const token = development ? url.searchParams.get('__clerk_db_jwt') : undefined;
  if (token) return token;
  if (development && !/^\/v1\/(client\/handshake|me\/oauth\/consent)\b/.test(url.pathname)) return undefined;
  return parse(headers.get('cookie') ?? '', '__client')['__client'];
}

/** Returns the origin of the application that proxied the request, if any. Throws a 401 if the proxy sent a wrong key. */
function proxyOrigin(instance: Instance, { headers }: ApiRequest): string | undefined {
  const proxyUrl = headers.get('clerk-proxy-url');
  const secretKey = headers.get('clerk-secret-key');
  if (proxyUrl === null || secretKey === null) return undefined;
  if (!isSecretKey(instance, secretKey)) {
    throw new ApiError(401, 'clerk_key_invalid', 'The proxy sent a secret key of another instance.');
  }
  return URL.canParse(proxyUrl) ? new URL(proxyUrl).origin : undefined;
}

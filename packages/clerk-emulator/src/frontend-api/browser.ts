import { type ApiRequest, isLoopback } from '../http';
import { activeSession, activeSessions } from '../instance/accounts';
import type { Client, Session, SignIn, SignUp, User } from '../instance/data';
import { ApiError, notFound } from '../instance/error';
import { newId } from '../instance/ids';
import { type Instance, isSecretKey } from '../instance/instance';

/** The browser behind a request, recognised by the token that its client was given. */
export interface Browser {
  /** The application's origin, which its session tokens name as the authorized party. */
  readonly origin: string | undefined;
  /** Its client as it stands now, if it has one. */
  readonly client: Client | undefined;
  /** The browser's client, made now if it has none. */
  establish(): Client;
}

/** A request of the Frontend API: of the browser SDK, or of a browser on its way to a page. */
export interface BrowserRequest extends ApiRequest {
  readonly browser: Browser;
}

/** How long an attempt to sign in or up may be gone on with. */
export const ATTEMPT_LIFE = 24 * 60 * 60 * 1000;
const COOKIE_LIFE_SECONDS = 365 * 24 * 60 * 60;

/**
 * Recognises the browser: in development by `__clerk_db_jwt` in the query, in production by the `__client`
 * cookie. Throws the provider's 400 for a page of another site, which must not act for the browser's user.
 */
export function recogniseBrowser(instance: Instance, request: ApiRequest): Browser {
  const proxy = proxyOrigin(instance, request);
  const origin = request.headers.get('origin') ?? undefined;
  if (origin !== undefined && origin !== proxy && !isLoopback(origin)) {
    throw new ApiError(400, 'origin_invalid', `The origin ${origin} may not use this instance.`);
  }
  const { clients } = instance.store;
  const token = shownToken(instance, request);
  let id = token ? clients.find((client) => client.token === token)?.id : undefined;
  const client = () => (id === undefined ? undefined : clients.get(id));
  return {
    origin: origin ?? proxy,
    get client() {
      return client();
    },
    establish() {
      const established = client() ?? newClient(instance);
      id = established.id;
      return established;
    },
  };
}

/** Whether an application at this origin may use the stand-in: one on this machine, or the one that proxies to it. */
export function isTrustedOrigin(instance: Instance, request: ApiRequest, origin: string): boolean {
  return isLoopback(origin) || origin === proxyOrigin(instance, request);
}

/** A client for a browser that has none. */
export function newClient(instance: Instance): Client {
  const now = instance.clock.now();
  return instance.store.clients.put({
    id: newId('client'),
    token: newId('dvb'),
    signInId: null,
    signUpId: null,
    lastStrategy: null,
    createdAt: now,
    updatedAt: now,
  });
}

/** The headers and cookies by which the browser keeps its client, and by which pages see that somebody signed in. */
export function browserState(instance: Instance, request: BrowserRequest) {
  const { client } = request.browser;
  if (instance.publishableKey.development) {
    const isNew = client !== undefined && client.token !== shownToken(instance, request);
    return { headers: isNew ? { 'clerk-db-jwt': client.token } : {}, cookies: [] };
  }
  const attributes = cookieAttributes(request.browser);
  return {
    headers: {},
    cookies: [
      ...(client ? [`__client=${client.token}; HttpOnly; ${attributes}`] : []),
      ...suffixed(instance, '__client_uat').map(
        (name) => `${name}=${clientUpdatedAt(instance, client)}; ${attributes}`,
      ),
    ],
  };
}

/** When somebody last signed in or out, in seconds; 0 while nobody is signed in. */
export function clientUpdatedAt(instance: Instance, client: Client | undefined): number {
  const signedIn = client !== undefined && activeSessions(instance, client.id).length > 0;
  return signedIn ? Math.floor(client.updatedAt / 1000) : 0;
}

/** A cookie's name as the SDKs read it: plain, and with the instance's suffix. */
export function suffixed(instance: Instance, name: string): [string, string] {
  return [name, `${name}_${instance.publishableKey.cookieSuffix}`];
}

/** Attributes of a cookie that lasts, secure where the application is. */
export function cookieAttributes(browser: Browser): string {
  const secure = browser.origin?.startsWith('https:') ? '; Secure' : '';
  return `Path=/; SameSite=Lax; Max-Age=${COOKIE_LIFE_SECONDS}${secure}`;
}

/** A session of the browser's client. Throws a 404 for another's and the 401 of somebody signed out for one that is over. */
export function requireOwnSession(instance: Instance, request: BrowserRequest, id: string): Session {
  const { client } = request.browser;
  if (client && instance.store.sessions.get(id)?.clientId !== client.id) throw notFound('The session');
  const session = client && activeSession(instance, id);
  if (session === undefined) throw new ApiError(401, 'signed_out', 'You are signed out.');
  return session;
}

/** The sign-in or sign-up that this browser began. Throws a 404 for another's and for one abandoned a day ago. */
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

/** Throws the error by which the SDK learns that this browser is signed in already: an instance has one session each. */
export function requireNobodySignedIn(instance: Instance, client: Client): void {
  if (activeSessions(instance, client.id).length === 0) return;
  throw new ApiError(400, 'session_exists', 'You are already signed in.');
}

/** Who is signed in, in the session that the SDK names or else the only one. Throws the 401 of somebody signed out. */
export function requireSignedIn(
  instance: Instance,
  request: BrowserRequest,
): { session: Session; user: User } {
  const { client } = request.browser;
  const id = request.url.searchParams.get('_clerk_session_id');
  const session = requireOwnSession(
    instance,
    request,
    id ?? (client && activeSessions(instance, client.id)[0]?.id) ?? '',
  );
  const user = instance.store.users.get(session.userId);
  if (user === undefined) throw new ApiError(401, 'signed_out', 'You are signed out.');
  return { session, user };
}

function shownToken(instance: Instance, { url, headers }: ApiRequest): string | undefined {
  if (instance.publishableKey.development) return url.searchParams.get('__clerk_db_jwt') ?? undefined;
  for (const pair of headers.get('cookie')?.split('; ') ?? []) {
    if (pair.startsWith('__client=')) return pair.slice('__client='.length);
  }
  return undefined;
}

/** The application that passed the request on: it proves that it is one by the secret key. */
function proxyOrigin(instance: Instance, { headers }: ApiRequest): string | undefined {
  const proxyUrl = headers.get('clerk-proxy-url');
  const secretKey = headers.get('clerk-secret-key');
  if (proxyUrl === null || secretKey === null) return undefined;
  if (!isSecretKey(instance, secretKey)) {
    throw new ApiError(401, 'clerk_key_invalid', 'The proxy sent another secret key than this instance has.');
  }
  return URL.canParse(proxyUrl) ? new URL(proxyUrl).origin : undefined;
}

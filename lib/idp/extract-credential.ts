import * as z from 'zod/mini';

/** The header that authenticates an API request. Undefined for a request without a credential. */
export type Credential =
  | {
      readonly header: 'authorization' | 'cookie';
      readonly value: string;
      /**
       * The session token. Undefined if the cookies contain several tokens, because the provider's SDK (Clerk's packages for
       * servers) then chooses one of them.
       */
      readonly token: string | undefined;
    }
  | undefined;

/**
 * A JWT (RFC 7519) without padding, and without text before or after it. The SDK recognizes OAuth and machine JWTs only in this
 * form. With padding or more text, the SDK could accept an OAuth or machine JWT as a session token. A JWT begins with `ey`,
 * because its header is a JSON object in base64url. API keys and opaque machine tokens begin with other characters.
 */
const JWT = /^ey[\w-]*\.[\w-]+\.[\w-]+$/;
/** A bearer token. The word `Bearer` is optional, as in the SDK. */
const BEARER = /^(?:Bearer +)?(\S+) *$/i;
/** An Authorization header with another scheme. It may be meant for a proxy, so it does not replace a session cookie. */
const OTHER_SCHEME = /^(?!Bearer )\S+ +\S/i;

interface Cookie {
  readonly name: string;
  readonly value: string;
}

/** Parses the cookies of a request and trims them in the same way as the SDK. */
export function parseCookies(headers: Headers): Cookie[] {
  return (headers.get('cookie') ?? '').split(';').map((cookie) => {
    const [name = '', ...rest] = cookie.split('=');
    return { name: name.trim(), value: rest.join('=').trim() };
  });
}

/** Serializes cookies into a `cookie` header. */
export const cookieHeader = (cookies: readonly Cookie[]): string =>
  cookies.map(({ name, value }) => `${name}=${value}`).join('; ');

/** Chrome and Firefox keep at most 180 cookies for a domain. */
const MAX_COOKIES = 180;
/** The SDK's cookies have this prefix. */
const SDK_COOKIE_PREFIX = '__';

/**
 * Limits the `cookie` header to 180 cookies, because the CPU time of a route handler in Next.js grows with the square of
 * the number of cookies (`MutableRequestCookiesAdapter.wrap`). If there are more, moves the SDK's cookies to the front and
 * drops all cookies after the first 180.
 */
function limitCookies(headers: Headers): void {
  const cookies = parseCookies(headers);
  if (cookies.length <= MAX_COOKIES) return;
  const isOfSdk = ({ name }: Cookie) => name.startsWith(SDK_COOKIE_PREFIX);
  const ordered = [...cookies.filter(isOfSdk), ...cookies.filter((cookie) => !isOfSdk(cookie))];
  headers.set('cookie', cookieHeader(ordered.slice(0, MAX_COOKIES)));
}

/** Copies the headers of a request. Omits headers that a client must not set, and limits the cookies. */
export function stripSdkHeaders(given: Headers): Headers {
  const headers = new Headers(given);
  limitCookies(headers);
  // With `x-clerk-debug`, the SDK's `auth()` logs the session token. The other `x-clerk-` headers and the
  // `x-identity-link-` headers could forge the auth state.
  for (const name of [...headers.keys()]) if (/^x-(?:clerk|identity-link)-/.test(name)) headers.delete(name);
  return headers;
}

const isSession = ({ name }: Cookie) => /^__session(?:_|$)/.test(name);

/** Returns true for a session cookie whose value is not a JWT. */
export const isMalformedSessionCookie = (cookie: Cookie): boolean =>
  isSession(cookie) && !JWT.test(cookie.value);

/**
 * Returns the session token of an Authorization header. Returns `absent` if there is no such header or if it has another
 * scheme. Returns `malformed` for any other value.
 */
function parseBearer(authorization: string | null): { token: string } | 'absent' | 'malformed' {
  if (authorization === null || OTHER_SCHEME.test(authorization)) return 'absent';
  const token = BEARER.exec(authorization)?.[1] ?? '';
  return JWT.test(token) ? { token } : 'malformed';
}

/** Cookies from which the SDK reads the session. A suffix of the name may identify an instance of the provider. */
const SDK_COOKIE = /^__(?:session|client_uat|clerk_db_jwt)(?:_|$)/;

/** Safe methods (RFC 9110, 9.2.1). */
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Returns true if the host of the origin equals the `host` header. Does not compare the scheme. */
function originMatchesHost(origin: string, headers: Headers): boolean {
  return URL.canParse(origin) && new URL(origin).host === headers.get('host');
}

/**
 * Returns true if the cookies may authenticate the request. A browser adds cookies to requests that any page triggers, so:
 * - A request from another site (`Sec-Fetch-Site: cross-site`) does not pass.
 * - A request from the same origin passes. A request from the same site passes if its method is safe.
 * - Any other request with an `Origin` passes if that origin is an authorized party (IDP_AUTHORIZED_PARTIES). If the request
 *   has no `Sec-Fetch-Site`, an origin with the host of the request passes too.
 * - Any other request without an `Origin` passes if the user started it (`Sec-Fetch-Site: none`). It also passes if it has no
 *   `Sec-Fetch-Site`, because a page in a current browser cannot trigger such a request over HTTPS or to localhost.
 */
function passesCsrfCheck(method: string, headers: Headers, authorizedParties: readonly string[]): boolean {
  const site = headers.get('sec-fetch-site');
  if (site === 'cross-site') return false;
  if (site === 'same-origin' || (site === 'same-site' && SAFE.has(method))) return true;
  const origin = headers.get('origin');
  if (origin === null) return site === null || site === 'none';
  return authorizedParties.includes(origin) || (site === null && originMatchesHost(origin, headers));
}

/** Returns the cookies from which the SDK reads the session, or undefined if none of them contains a token. */
function sessionCookies(headers: Headers): Credential {
  const cookies = parseCookies(headers).filter(
    (cookie) => SDK_COOKIE.test(cookie.name) && !isMalformedSessionCookie(cookie),
  );
  const tokens = new Set(cookies.filter(isSession).map(({ value }) => value));
  if (tokens.size === 0) return undefined;
  const [token] = tokens;
  return { header: 'cookie', value: cookieHeader(cookies), token: tokens.size === 1 ? token : undefined };
}

/**
 * Returns the credential of an API request. If the credential is not allowed, returns the reason instead. If the request has no
 * credential, returns neither a credential nor a reason. A bearer token takes precedence over cookies, even if it is malformed.
 * Treats API keys and opaque machine tokens as malformed. Otherwise, any client could make the SDK call the provider's API with
 * the secret key, because the SDK verifies such tokens there.
 */
export function extractCredential(
  { method, headers }: Pick<Request, 'method' | 'headers'>,
  authorizedParties: readonly string[],
): { readonly credential: Credential; readonly rejectionReason?: 'foreign-cookie' | 'malformed' } {
  const bearer = parseBearer(headers.get('authorization'));
  if (bearer === 'malformed') return { credential: undefined, rejectionReason: 'malformed' };
  if (bearer !== 'absent') {
    const { token } = bearer;
    return { credential: { header: 'authorization', value: `Bearer ${token}`, token } };
  }
  const credential = sessionCookies(headers);
  return credential === undefined || passesCsrfCheck(method, headers, authorizedParties)
    ? { credential }
    : { credential: undefined, rejectionReason: 'foreign-cookie' };
}

const Times = z.object({ exp: z.number(), iat: z.optional(z.number()) });

/** Returns when a verified session token expires (`exp`) and when it was issued (`iat`), both in seconds since 1970. */
export function timesOf(token: string): z.infer<typeof Times> {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
  return Times.parse(JSON.parse(payload));
}

import * as z from 'zod/mini';

/** What decides who makes an API request: the one header that the SDK may judge it by. Undefined: nobody says. */
export type Credential =
  | {
      readonly header: 'authorization' | 'cookie';
      readonly value: string;
      /** The session token in it; undefined where cookies hold several, of which the SDK takes its pick. */
      readonly token: string | undefined;
    }
  | undefined;

/**
 * A JWT spelled as the standard has it, and nothing behind it. With a word or a padding more, the SDK's middleware
 * and its `auth()` would read two different things, and a token of another kind would pass for a session's. A JSON
 * object in base64url begins with `ey`: API keys and machine tokens, whatever follows their prefix, do not.
 */
const JWT = /^ey[\w-]*\.[\w-]+\.[\w-]+$/;
const BEARER = /^(?:Bearer +)?(\S+) *$/i;
/** Of a proxy, say: the session is then in the cookie. */
const OTHER_SCHEME = /^(?!Bearer )\S+ +\S/i;

interface Cookie {
  readonly name: string;
  readonly value: string;
}

/** The cookies of a request, trimmed as generously as the SDK's own parser does it. */
export function parseCookies(headers: Headers): Cookie[] {
  return (headers.get('cookie') ?? '').split(';').map((cookie) => {
    const [name = '', ...rest] = cookie.split('=');
    return { name: name.trim(), value: rest.join('=').trim() };
  });
}

/** A `cookie` header of the cookies. */
export const cookieHeader = (cookies: readonly Cookie[]): string =>
  cookies.map(({ name, value }) => `${name}=${value}`).join('; ');

/** Chrome and Firefox keep at most 180 cookies for a domain. */
const MAX_COOKIES = 180;
/** The SDK's cookies have this prefix. */
const SDK_COOKIE_PREFIX = '__';

/**
 * Limits the `cookie` header to 180 cookies. The SDK's cookies come first, the others keep their order. The cost of a route
 * handler in Next.js grows with the square of their number (`MutableRequestCookiesAdapter.wrap`).
 */
export function limitCookies(headers: Headers): void {
  const given = headers.get('cookie') ?? '';
  if (given.split(';').length <= MAX_COOKIES) return;
  const cookies = parseCookies(headers);
  const isOfSdk = ({ name }: Cookie) => name.startsWith(SDK_COOKIE_PREFIX);
  const ordered = [...cookies.filter(isOfSdk), ...cookies.filter((cookie) => !isOfSdk(cookie))];
  headers.set('cookie', cookieHeader(ordered.slice(0, MAX_COOKIES)));
}

const isSession = ({ name }: Cookie) => /^__session(?:_|$)/.test(name);

/** False of a session cookie that holds no token. */
export const isNoOddSession = (cookie: Cookie): boolean => !isSession(cookie) || JWT.test(cookie.value);

/** The session token of an Authorization header; `absent`: the header is none for us; `refused`: it holds something else. */
function sessionTokenOf(authorization: string | null): { token: string } | 'absent' | 'refused' {
  if (authorization === null || OTHER_SCHEME.test(authorization)) return 'absent';
  const token = BEARER.exec(authorization)?.[1] ?? '';
  return JWT.test(token) ? { token } : 'refused';
}

/** The cookies by which the SDK tells a session, also under the name of one instance among several. */
const SDK_COOKIE = /^__(?:session|client_uat|clerk_db_jwt)(?:_|$)/;

/** Methods that change nothing (RFC 9110, 9.2.1). */
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** True if the origin is that of the address which the request was sent to. */
function originMatchesHost(origin: string, headers: Headers): boolean {
  return URL.canParse(origin) && new URL(origin).host === headers.get('host');
}

/**
 * True if the cookies of a request are its own credential: a browser sends them with whatever any page makes it send. For
 * a method that changes something the page must be of the same origin, or of an authorized party; a page of another
 * site is refused for any method. A request that names neither site nor origin is taken for one that no page has made.
 */
function passesCsrfCheck(method: string, headers: Headers, authorizedParties: readonly string[]): boolean {
  const site = headers.get('sec-fetch-site');
  if (site === 'cross-site') return false;
  if (site === 'same-origin' || (site === 'same-site' && SAFE.has(method))) return true;
  const origin = headers.get('origin');
  if (origin === null) return site === null || site === 'none';
  return authorizedParties.includes(origin) || (site === null && originMatchesHost(origin, headers));
}

function sessionCookies(headers: Headers): Credential {
  const cookies = parseCookies(headers).filter(
    (cookie) => SDK_COOKIE.test(cookie.name) && isNoOddSession(cookie),
  );
  const tokens = new Set(cookies.filter(isSession).map(({ value }) => value));
  if (tokens.size === 0) return undefined;
  const [token] = tokens;
  return { header: 'cookie', value: cookieHeader(cookies), token: tokens.size === 1 ? token : undefined };
}

/**
 * The credential of an API request. API keys and machine tokens, which make the SDK ask the provider with our secret
 * key, are none. Who sends a bearer is judged by it alone: no cookie stands in for one that is refused.
 */
export function extractCredential(
  { method, headers }: Pick<Request, 'method' | 'headers'>,
  authorizedParties: readonly string[],
): { readonly credential: Credential; readonly rejectionReason?: 'foreign-cookie' | 'malformed' } {
  const bearer = sessionTokenOf(headers.get('authorization'));
  if (bearer === 'refused') return { credential: undefined, rejectionReason: 'malformed' };
  if (bearer !== 'absent') {
    const { token } = bearer;
    return { credential: { header: 'authorization', value: `Bearer ${token}`, token } };
  }
  const credential = sessionCookies(headers);
  return credential === undefined || passesCsrfCheck(method, headers, authorizedParties)
    ? { credential }
    : { credential: undefined, rejectionReason: 'foreign-cookie' };
}

const Expiring = z.object({ exp: z.number() });

/** When a verified session token expires, in milliseconds since 1970. */
export function expiryOf(token: string): number {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
  return Expiring.parse(JSON.parse(payload)).exp * 1000;
}

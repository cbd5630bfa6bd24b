import type { Verdict } from '../core/verdict';
import { isMiddlewareHeader } from '../next/middleware-headers';

/** The header that authenticates an API request. */
export interface Credential {
  readonly header: 'authorization' | 'cookie';
  readonly value: string;
}

/** Returns the verdict of another provider, or undefined if the credential belongs to none. Never rejects. */
export type AskProviders = (credential: Credential, address: URL) => Promise<Verdict | undefined>;

/** A bearer token. The word `Bearer` is optional, as in Clerk's SDK. */
const BEARER = /^(?:Bearer +)?(\S+) *$/i;
/** Another scheme, which may be meant for a proxy. It does not replace a session cookie. */
const OTHER_SCHEME = /^(?!Bearer )\S+ +\S/i;

/** Next.js needs time in proportion to the square of the number of cookies. Browsers keep at most 180 for a domain. */
const MAX_COOKIES = 180;

/** All cookies of Clerk, some of which are credentials. A browser can have them for long after an application has left Clerk. */
const CLERK_COOKIE = /^__(?:session|client|refresh|clerk)/;

export interface Cookie {
  readonly name: string;
  readonly value: string;
}

/** Parses the cookies of a request. Omits cookies without a name. */
export function parseCookies(headers: Headers): Cookie[] {
  return (headers.get('cookie') ?? '')
    .split(';')
    .map((cookie) => {
      const [name = '', ...value] = cookie.split('=');
      return { name: name.trim(), value: value.join('=').trim() };
    })
    .filter(({ name }) => name !== '');
}

/** Serializes cookies into a `cookie` header. */
export const cookieHeader = (cookies: readonly Cookie[]): string =>
  cookies.map(({ name, value }) => `${name}=${value}`).join('; ');

/** Copies the headers of a request without those that could forge a session, and at most 180 cookies, the SDK's first. */
export function clientHeaders(given: Headers): Headers {
  const headers = new Headers(given);
  for (const name of given.keys())
    if (isMiddlewareHeader(name) || /^x-(?:clerk|identity-link)-/.test(name)) headers.delete(name);
  const cookies = headers.get('cookie')?.split(';') ?? [];
  if (cookies.length > MAX_COOKIES) {
    const isOfSdk = (cookie: string) => cookie.trim().startsWith('__');
    const ordered = [...cookies.filter(isOfSdk), ...cookies.filter((cookie) => !isOfSdk(cookie))];
    headers.set('cookie', ordered.slice(0, MAX_COOKIES).join(';'));
  }
  return headers;
}

/** Returns true if cookies may authenticate the request, although any page can make a browser send them (contract, 5.4). */
export function passesCsrfCheck(
  method: string,
  headers: Headers,
  authorizedParties: readonly string[],
): boolean {
  const site = headers.get('sec-fetch-site');
  if (site === 'cross-site') return false;
  if (site === 'same-origin' || (site === 'same-site' && /^(?:GET|HEAD|OPTIONS)$/.test(method))) return true;
  const origin = headers.get('origin');
  if (origin === null) return site === null || site === 'none';
  const isOwn = URL.canParse(origin) && new URL(origin).host === headers.get('host');
  return authorizedParties.includes(origin) || (site === null && isOwn);
}

/** Returns the bearer token of a request, which precedes cookies. It is empty if the header is malformed. */
export function bearerToken(headers: Headers): string | undefined {
  const authorization = headers.get('authorization');
  if (authorization === null || OTHER_SCHEME.test(authorization)) return undefined;
  return BEARER.exec(authorization)?.[1] ?? '';
}

/** Returns the credential of a bearer token. */
export const bearer = (token: string): Credential => ({ header: 'authorization', value: `Bearer ${token}` });

/** Returns the cookies that can be a credential of another provider. */
export function otherCookies(headers: Headers): Credential | undefined {
  const cookies = parseCookies(headers).filter(({ name }) => !CLERK_COOKIE.test(name));
  return cookies.length > 0 ? { header: 'cookie', value: cookieHeader(cookies) } : undefined;
}

/**
 * Returns the header that can have a credential of another provider: a bearer token or, under the rule for cookies,
 * those that are not Clerk's.
 */
export function otherCredential(
  method: string,
  headers: Headers,
  authorizedParties: readonly string[],
): Credential | undefined {
  const token = bearerToken(headers);
  if (token !== undefined) return token === '' ? undefined : bearer(token);
  return passesCsrfCheck(method, headers, authorizedParties) ? otherCookies(headers) : undefined;
}

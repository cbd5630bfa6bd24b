import { NextRequest } from 'next/server';
import * as z from 'zod/mini';
import {
  type Credential,
  cookieHeader,
  isMalformedSessionCookie,
  parseCookies,
  stripSdkHeaders,
} from './extract-credential';

/**
 * Returns a copy of an API request. The copy has the method, the path and the credential, but no query and no other header of
 * the client. Otherwise, Clerk's SDK could respond in place of the route: `Accept: text/html` would cause a redirect, and
 * `__clerk_*` parameters would cause a redirect or an error. Machine tokens and refresh cookies would make the SDK call the
 * provider with the secret key.
 */
export function sanitizeApiRequest(request: NextRequest, credential: Credential): NextRequest {
  const { origin, pathname } = request.nextUrl;
  return new NextRequest(new URL(pathname, origin), {
    method: request.method,
    headers: {
      'sec-fetch-dest': 'empty',
      ...(credential ? { [credential.header]: credential.value } : {}),
    },
  });
}

const HandshakeHeader = z.object({
  alg: z.literal('RS256'),
  typ: z.optional(z.literal('JWT')),
  kid: z.string().check(z.regex(/^[\w-]{1,64}$/)),
});

/**
 * Returns true if a text has the form of a handshake token, which is a JWT. In a handshake, the SDK redirects the browser to
 * the provider to renew a session. The provider redirects the browser back with such a token, or with a nonce that the SDK
 * exchanges for cookies. The SDK must not get any other text, because it would print that text in an error message. A client
 * could then write to the log.
 */
function isHandshakeShaped(token: string): boolean {
  const [header, ...rest] = token.split('.');
  if (header === undefined || rest.length !== 2) return false;
  try {
    return HandshakeHeader.safeParse(JSON.parse(Buffer.from(header, 'base64url').toString())).success;
  } catch {
    return false;
  }
}

const HANDSHAKE = '__clerk_handshake';
const NONCE = '__clerk_handshake_nonce';
/** Query parameters that the provider adds to the address of a page when it redirects the browser back. */
const HANDSHAKE_PARAMETERS = [HANDSHAKE, NONCE, '__clerk_db_jwt'];

/**
 * Header with the path and query of the requested page. lib/user.ts reads this header to return the browser to the page after
 * a sign-in. A client cannot set the header.
 */
export const PAGE_PATH = 'x-identity-link-path';
const MAX_PATH_LENGTH = 2_000;

function pathOf(given: URL): string {
  const url = new URL(given);
  for (const name of HANDSHAKE_PARAMETERS) url.searchParams.delete(name);
  const path = url.pathname + url.search;
  return path.length > MAX_PATH_LENGTH ? '/' : path;
}

/**
 * Returns a copy of a page request. The copy lacks `__clerk_redirect_url`. With test keys, this parameter would make the SDK
 * send the session to another host. The copy also lacks the header and the cookies that make the SDK call the provider with the
 * secret key. The copy keeps the nonce of a handshake, although the SDK calls the provider to exchange the nonce. The caller of
 * this function must therefore set a time limit.
 */
export function sanitizePageRequest(request: NextRequest): NextRequest {
  const url = new URL(request.url);
  const headers = stripSdkHeaders(request.headers);
  url.searchParams.delete('__clerk_redirect_url');
  if (!url.searchParams.getAll(HANDSHAKE).every(isHandshakeShaped)) url.searchParams.delete(HANDSHAKE);
  headers.delete('authorization');
  const cookies = parseCookies(headers).filter(
    (cookie) =>
      !isMalformedSessionCookie(cookie) &&
      !cookie.name.startsWith('__refresh') &&
      (!/^__clerk_handshake(?!_nonce)/.test(cookie.name) || isHandshakeShaped(cookie.value)),
  );
  headers.set('cookie', cookieHeader(cookies));
  headers.set(PAGE_PATH, pathOf(url));
  return new NextRequest(url, { headers, method: request.method });
}

/**
 * Returns true if the request has a handshake nonce. The SDK calls the Backend API to exchange the nonce for session cookies.
 */
export const hasHandshakeNonce = (request: NextRequest): boolean =>
  request.nextUrl.searchParams.has(NONCE) || request.cookies.has(NONCE);

/** This header prevents a handshake, because the SDK starts a handshake only if the browser requests a document. */
const NO_HANDSHAKE = { 'sec-fetch-dest': 'empty' };

/**
 * Returns a copy of a page request. The copy keeps the session cookies. The SDK neither completes nor starts a handshake for
 * the copy.
 */
export function withoutHandshake(request: NextRequest): NextRequest {
  const url = new URL(request.url);
  for (const name of HANDSHAKE_PARAMETERS) url.searchParams.delete(name);
  const cookies = parseCookies(request.headers).filter(({ name }) => !name.startsWith(HANDSHAKE));
  const headers = new Headers({ ...Object.fromEntries(request.headers), ...NO_HANDSHAKE });
  headers.set('cookie', cookieHeader(cookies));
  return new NextRequest(url, { headers, method: request.method });
}

/**
 * Returns a copy of a sanitized page request without the query and the cookies. The SDK does not call the provider for such a
 * copy.
 */
export function signedOutRequest(request: NextRequest): NextRequest {
  const { origin, pathname } = request.nextUrl;
  const headers = new Headers({ ...Object.fromEntries(request.headers), ...NO_HANDSHAKE });
  headers.delete('cookie');
  return new NextRequest(new URL(pathname, origin), { headers, method: request.method });
}

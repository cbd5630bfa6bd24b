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
 * Returns a copy of an API request that contains only the credential, so that the SDK does not respond in place of the route.
 * `Accept: text/html` would cause a redirect, and `__clerk_*` parameters would cause a redirect or an error. Machine tokens and
 * refresh cookies would make the SDK call the provider with the secret key.
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
 * Returns true if a text has the form of a handshake token, which is a JWT. The SDK prints any other text in its error message.
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
/**
 * Parameters of a handshake, which renews a session: the SDK redirects the browser to the provider, and the provider redirects
 * it back.
 */
const HANDSHAKE_PARAMETERS = [HANDSHAKE, NONCE, '__clerk_db_jwt'];

/** Header with the path and query of a page, so that the sign-in page can lead back. A client cannot set this header. */
export const PAGE_PATH = 'x-identity-link-path';
const MAX_PATH_LENGTH = 2_000;

function pathOf(given: URL): string {
  const url = new URL(given);
  for (const name of HANDSHAKE_PARAMETERS) url.searchParams.delete(name);
  const path = url.pathname + url.search;
  return path.length > MAX_PATH_LENGTH ? '/' : path;
}

/**
 * Returns a copy of a page request. The copy has no parameter, header or cookie that would send the session to another host
 * (with test keys) or make the service call the provider with its secret key. The parameters and cookies of a handshake are an
 * exception. One of them, the nonce, causes a call to the provider, so the caller of this function must set a time limit.
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

/** Returns true if the request has a nonce. The SDK calls the Backend API to exchange it for session cookies. */
export const hasHandshakeNonce = (request: NextRequest): boolean =>
  request.nextUrl.searchParams.has(NONCE) || request.cookies.has(NONCE);

/** This header prevents a handshake, because the SDK starts a handshake only if the browser requests a document. */
const NO_HANDSHAKE = { 'sec-fetch-dest': 'empty' };

/** Returns a copy of a page request that has its session cookies, but neither completes nor starts a handshake. */
export function withoutHandshake(request: NextRequest): NextRequest {
  const url = new URL(request.url);
  for (const name of HANDSHAKE_PARAMETERS) url.searchParams.delete(name);
  const cookies = parseCookies(request.headers).filter(({ name }) => !name.startsWith(HANDSHAKE));
  const headers = new Headers({ ...Object.fromEntries(request.headers), ...NO_HANDSHAKE });
  headers.set('cookie', cookieHeader(cookies));
  return new NextRequest(url, { headers, method: request.method });
}

/** Returns a copy of a sanitized page request without its session. The SDK then makes no call to the provider. */
export function signedOutRequest(request: NextRequest): NextRequest {
  const { origin, pathname } = request.nextUrl;
  const headers = new Headers({ ...Object.fromEntries(request.headers), ...NO_HANDSHAKE });
  headers.delete('cookie');
  return new NextRequest(new URL(pathname, origin), { headers, method: request.method });
}

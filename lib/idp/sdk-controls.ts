import { NextRequest } from 'next/server';
import { z } from 'zod';

/**
 * A JWT spelled as the standard has it, and nothing behind it. With a word or a padding more, the SDK's middleware
 * and its `auth()` would read two different things, and a token of another kind would pass for a session's. A JSON
 * object in base64url begins with `ey`: API keys and machine tokens, whatever follows their prefix, do not.
 */
const JWT = /^ey[\w-]*\.[\w-]+\.[\w-]+$/;
const BEARER = /^(?:Bearer +)?(\S+) *$/i;
/** Of a proxy, say: the session is then in the cookie. */
const OTHER_SCHEME = /^(?!Bearer )\S+ +\S/i;

/** An API key or a machine token would make the SDK ask the provider, with our secret key. */
function keepSessionTokenOnly(headers: Headers): void {
  const authorization = headers.get('authorization');
  if (authorization === null) return;
  const token = BEARER.exec(authorization)?.[1] ?? '';
  if (JWT.test(token)) headers.set('authorization', `Bearer ${token}`);
  else if (OTHER_SCHEME.test(authorization)) headers.delete('authorization');
  // Not deleted: a session cookie must not stand in for a bearer that the caller chose to send.
  else headers.set('authorization', 'Bearer refused');
}

const HandshakeHeader = z.object({
  alg: z.literal('RS256'),
  typ: z.literal('JWT').optional(),
  kid: z.string().regex(/^[\w-]{1,64}$/),
});

/** The SDK logs why it refuses a handshake, and quotes it: only what could be one may get there. */
function couldBeHandshake(token: string): boolean {
  const [header, ...rest] = token.split('.');
  if (header === undefined || rest.length !== 2) return false;
  try {
    return HandshakeHeader.safeParse(JSON.parse(Buffer.from(header, 'base64url').toString())).success;
  } catch {
    return false;
  }
}

/** A copy of the request with its own address and headers, of which those that only the SDK sends are gone. */
function copyOf(request: NextRequest): { url: URL; headers: Headers; copy: () => NextRequest } {
  const url = new URL(request.url);
  const headers = new Headers(request.headers);
  // One of them makes `auth()` log the session token.
  for (const name of [...headers.keys()]) if (name.startsWith('x-clerk-')) headers.delete(name);
  return { url, headers, copy: () => new NextRequest(url, { headers, method: request.method }) };
}

/** Keeps the cookies that a test lets pass; of those that hold a session token, only what is one. */
function keepCookies(headers: Headers, keep: (name: string, value: string) => boolean): void {
  // Trimmed as generously as the SDK's own parser does it.
  const cookies = (headers.get('cookie') ?? '').split(';').map((cookie) => cookie.trim());
  const kept = cookies.filter((cookie) => {
    const [name = '', ...rest] = cookie.split('=');
    const value = rest.join('=').trim();
    return keep(name.trim(), value) && (!/^__session(?:_|$)/.test(name.trim()) || JWT.test(value));
  });
  headers.set('cookie', kept.join('; '));
}

const SDK_COOKIE = /^__(?:clerk_handshake|clerk_redirect_count|refresh)/;

/**
 * What the SDK may see of an API request: the session token, by header or cookie, and nothing that makes it answer
 * in our place. A request with `Accept: text/html` would be redirected, `__clerk_*` parameters redirect or fail,
 * and machine tokens or refresh cookies cause a call to the provider with our secret key.
 */
export function withoutSdkControls(request: NextRequest): NextRequest {
  const { url, headers, copy } = copyOf(request);
  for (const name of [...url.searchParams.keys()]) {
    if (name.startsWith('__clerk_')) url.searchParams.delete(name);
  }
  headers.set('sec-fetch-dest', 'empty');
  // With it Next.js answers 200 `{}` in the route's place.
  headers.delete('x-middleware-prefetch');
  keepSessionTokenOnly(headers);
  keepCookies(headers, (name) => !SDK_COOKIE.test(name));
  return copy();
}

const HANDSHAKE = '__clerk_handshake';

/**
 * What the SDK may see of a page request: all that renews a browser's session, and nothing that leads the session to
 * another host (with test keys) or makes the service call the provider with its secret key at anybody's word.
 */
export function withoutForeignControls(request: NextRequest): NextRequest {
  const { url, headers, copy } = copyOf(request);
  url.searchParams.delete('__clerk_redirect_url');
  if (!url.searchParams.getAll(HANDSHAKE).every(couldBeHandshake)) url.searchParams.delete(HANDSHAKE);
  headers.delete('authorization');
  keepCookies(
    headers,
    (name, value) =>
      !name.startsWith('__refresh') &&
      (!/^__clerk_handshake(?!_nonce)/.test(name) || couldBeHandshake(value)),
  );
  return copy();
}

/** The request of somebody unknown. */
export function withoutCredentials(request: NextRequest): NextRequest {
  const { headers, copy } = copyOf(request);
  headers.delete('authorization');
  headers.delete('cookie');
  return copy();
}

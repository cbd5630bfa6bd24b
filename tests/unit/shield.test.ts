import { readdirSync } from 'node:fs';
import path from 'node:path';
import { type NextFetchEvent, type NextMiddleware, NextRequest, NextResponse } from 'next/server';
import { expect, test, vi } from 'vitest';
import { isPage, shield } from '../../lib/idp/shield';
import { log } from '../../lib/log';

/** The paths of the app's files of that name, a dynamic segment as some value. */
const paths = (fileName: string) =>
  readdirSync('app', { recursive: true, encoding: 'utf8' })
    .filter((file) => path.basename(file) === fileName)
    .map((file) => `/${path.dirname(file)}`.replace('/.', '/').replace(/\/\[\[?[^\]]+\]\]?/g, '/value'));

test('every page is a page, and every route an API path', () => {
  expect(paths('page.tsx')).not.toEqual([]);
  expect(paths('route.ts')).not.toEqual([]);
  expect(paths('page.tsx').filter((page) => !isPage(page))).toEqual([]);
  expect(paths('route.ts').filter(isPage)).toEqual([]);
});

test.each([
  '/accounts',
  '/account/x',
  '/sign-in-x',
  '/signin',
  '/auth/v1/register',
  '/users/v1/me',
  '/x',
  '//',
  '/__clerk/x',
])('a path that is not known as a page is an API path: %s', (pathname) => {
  expect(isPage(pathname)).toBe(false);
});

const event: NextFetchEvent = Object.create(null);
const seenBy = async (request: NextRequest, isProxy = false) => {
  const middleware = vi.fn<NextMiddleware>(() => {
    const response = NextResponse.next();
    for (const name of ['status', 'reason', 'message']) response.headers.set(`x-clerk-auth-${name}`, 'x');
    return response;
  });
  const response = await shield(middleware, { isProxy: () => isProxy })(request, event);
  return { seen: middleware.mock.calls[0]?.[0], headers: new Headers(response?.headers) };
};

test('on an API path the SDK sees the session token and none of its own controls', async () => {
  const { seen, headers } = await seenBy(
    new NextRequest('http://localhost:3000/users/v1/me?__clerk_handshake=x&a=b&__clerk_db_jwt=y', {
      headers: {
        cookie:
          '__session=ey.b.c; __clerk_handshake=x; __clerk_handshake_nonce=x; __refresh_abc=x; theme=a%20b',
        'sec-fetch-dest': 'document',
        authorization: 'Bearer ak_0123',
      },
    }),
  );
  expect(seen?.url).toBe('http://localhost:3000/users/v1/me?a=b');
  expect(seen?.headers.get('cookie')).toBe('__session=ey.b.c; theme=a%20b');
  expect(seen?.headers.get('sec-fetch-dest')).toBe('empty');
  expect(seen?.headers.get('authorization')).toBe('Bearer refused');
  expect([...headers.keys()].filter((name) => name.startsWith('x-clerk'))).toEqual([]);
});

test.each([
  ['Bearer ey.b.c', 'Bearer ey.b.c'],
  ['bearer  ey.b.c', 'Bearer ey.b.c'],
  ['ey.b.c', 'Bearer ey.b.c'],
  ['Bearer ey.b.c x', 'Bearer refused'],
  ['Bearer ey.b.c==', 'Bearer refused'],
  ['Bearer ak_a.b.c', 'Bearer refused'],
  ['mt_a.b.c', 'Bearer refused'],
  ['Basic YTpi', null],
])('of an authorization the SDK sees a session token or none: %s', async (given, expected) => {
  const { seen } = await seenBy(
    new NextRequest('http://localhost:3000/users/v1/me', { headers: { authorization: given } }),
  );
  expect(seen?.headers.get('authorization')).toBe(expected);
});

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const handshake = `${encoded({ alg: 'RS256', typ: 'JWT', kid: 'ins_1' })}.${encoded({})}.x`;

test('on a page the SDK sees its own parameters, but none that leads elsewhere or calls the provider', async () => {
  const { seen, headers } = await seenBy(
    new NextRequest(
      `http://localhost:3000/account?__clerk_handshake=${handshake}&__clerk_redirect_url=https://evil.example`,
      {
        headers: {
          authorization: 'Bearer ak_0123',
          cookie: '__session=ey.b.c; __refresh_abc=b; __clerk_db_jwt=c',
        },
      },
    ),
  );
  expect(seen?.url).toBe(`http://localhost:3000/account?__clerk_handshake=${handshake}`);
  expect(seen?.headers.get('authorization')).toBeNull();
  expect(seen?.headers.get('cookie')).toBe('__session=ey.b.c; __clerk_db_jwt=c');
  expect(headers.get('x-clerk-auth-status')).toBe('x');
});

test('a page whose parameters the SDK fails over is the page without them', async () => {
  vi.spyOn(log, 'warn').mockReturnValue();
  const sdk = vi.fn<NextMiddleware>(() => {
    throw new Error('handshake');
  });
  const response = await shield(sdk, { isProxy: () => false })(
    new NextRequest(`http://localhost:3000/account?__clerk_handshake=${handshake}`),
    event,
  );
  expect(response?.headers.get('location')).toBe('http://localhost:3000/account');
});

test('on a page the SDK sees no handshake that cannot be one, and nothing in place of a session token', async () => {
  const odd = `${encoded({ alg: 'RS256', typ: 'JWT', kid: 'a\nb' })}.${encoded({})}.x`;
  const cookie = `__clerk_handshake=${odd}; __session=a.b.c==; __session_x=a.b; __clerk_handshake_nonce=y; __client_uat=1`;
  const { seen } = await seenBy(
    new NextRequest(`http://localhost:3000/account?__clerk_handshake=${odd}&a=b`, {
      headers: { cookie, 'x-clerk-debug': 'true' },
    }),
  );
  expect(seen?.url).toBe('http://localhost:3000/account?a=b');
  expect(seen?.headers.get('cookie')).toBe('__clerk_handshake_nonce=y; __client_uat=1');
  expect(seen?.headers.has('x-clerk-debug')).toBe(false);
});

test("the proxy of the local stack is the SDK's own, and elsewhere its path is an API path", async () => {
  const request = new NextRequest('http://localhost:3000/__clerk/v1/client?__clerk_redirect_url=x', {
    headers: { authorization: 'Bearer ak_0123' },
  });
  expect((await seenBy(request, true)).seen).toBe(request);
  const { seen } = await seenBy(request, false);
  expect(seen?.url).toBe('http://localhost:3000/__clerk/v1/client');
  expect(seen?.headers.get('authorization')).toBe('Bearer refused');
});

test.each<[string, () => Response | Promise<Response>]>([
  [
    'throws',
    () => {
      throw new TypeError('Cannot convert argument to a ByteString');
    },
  ],
  ['redirects', () => NextResponse.redirect('https://example.com')],
  ['never answers', () => new Promise<Response>(() => {})],
])('where the SDK %s over a credential, the request goes on as one without', async (_fault, answer) => {
  vi.useFakeTimers();
  vi.spyOn(log, 'warn').mockReturnValue();
  const sdk = vi.fn<NextMiddleware>((request) =>
    request.headers.has('authorization') ? answer() : NextResponse.next(),
  );
  const headers = { authorization: 'Bearer x', cookie: 'a=b' };
  const request = new NextRequest('http://localhost:3000/users/v1/me', { headers });
  const response = Promise.resolve(shield(sdk, { isProxy: () => false })(request, event));
  await vi.advanceTimersByTimeAsync(5_000);
  vi.useRealTimers();
  expect((await response)?.headers.get('location')).toBeNull();
  expect(sdk).toHaveBeenCalledTimes(2);
  expect(sdk.mock.lastCall?.[0].headers.get('cookie')).toBeNull();
});

import { type NextFetchEvent, type NextMiddleware, NextRequest, NextResponse } from 'next/server';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { authenticationMiddleware } from '#lib/idp/authentication-middleware';
import { foreignParty } from '#lib/idp/authorized-party';
import { log } from '#lib/log';
import { allowedMethods, isPage } from '#lib/routing/paths';

vi.mock('#lib/env', () => ({ environment: () => ({ IDP_SECRET_KEY: 'sk_test_of_this_test' }) }));

beforeEach(() => {
  vi.spyOn(log, 'warn').mockReturnValue();
  vi.spyOn(log, 'info').mockReturnValue();
});

test.each([
  '/accounts',
  '/account/x',
  '/sign-in-x',
  '/signin',
  '/auth/v1/register',
  '/users/v1/me',
  '/x',
  '/__clerk/x',
])('An unknown path is not a page: %s', (pathname) => {
  expect(isPage(pathname)).toBe(false);
});

const event: NextFetchEvent = Object.create(null);
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const api = (headers: Record<string, string> = {}, path = '/users/v1/me') =>
  new NextRequest(`http://localhost:3000${path}`, { headers });

/** Returns an SDK middleware that accepts every session token and sets its own response headers. */
const acceptingSdk = () =>
  vi.fn<NextMiddleware>(({ headers: given }) => {
    const headers = new Headers(given);
    const token =
      given.get('authorization')?.replace('Bearer ', '') ??
      /__session\w*=([^;]+)/.exec(given.get('cookie') ?? '')?.[1] ??
      '';
    headers.set('x-clerk-auth-status', token ? 'signed-in' : 'signed-out');
    headers.set('x-clerk-auth-token', token);
    headers.set('x-clerk-auth-signature', token && `signed ${token}`);
    if (token) headers.set('x-identity-link-user', 'user_1');
    const response = NextResponse.next({ request: { headers } });
    for (const name of ['status', 'reason', 'message']) response.headers.set(`x-clerk-auth-${name}`, 'x');
    return response;
  });

/** Returns the middleware of the service with this SDK. `pass` runs it for a request. */
function front({ isProxy = false, sdk = acceptingSdk() } = {}) {
  const middleware = authenticationMiddleware({
    pages: sdk,
    api: sdk,
    nextForDocument: (headers) => NextResponse.next({ request: { headers } }),
    isProxy: () => isProxy,
    authorizedParties: () => [],
  });
  return {
    sdk,
    async pass(request: NextRequest) {
      const calls = sdk.mock.calls.length;
      const response = await middleware(request, event);
      const headers = new Headers(response?.headers);
      const prefix = 'x-middleware-request-';
      const route = new Headers();
      for (const [name, value] of headers)
        if (name.startsWith(prefix)) route.set(name.slice(prefix.length), value);
      return {
        /** The request that the SDK received, or undefined if it was not called. */
        seen: sdk.mock.calls[calls]?.[0],
        /** Status and headers of the response. */
        status: response?.status,
        headers,
        /** Request headers that the route receives. */
        route,
        state: ['status', 'token', 'signature'].map((part) => route.get(`x-clerk-auth-${part}`)),
      };
    },
  };
}

let tokens = 0;
/** Returns a new string with the form of a session token. */
function sessionToken({ exp = Math.floor(Date.now() / 1000) + 300 } = {}): string {
  tokens += 1;
  return `${encoded({ alg: 'RS256' })}.${encoded({ exp, tokens })}.x`;
}
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const cookie = (token: string) => ({ cookie: `__session=${token}; __client_uat=1` });
const signedIn = (token: string) => ['signed-in', token, `signed ${token}`];
const signedOut = ['signed-out', '', ''];

describe('API paths', () => {
  test('A route below /cron receives the bearer token, and the SDK does not look for a session', async () => {
    const { pass } = front();
    for (const given of [
      bearer('of the scheduler'),
      { ...bearer(sessionToken()), ...cookie(sessionToken()) },
    ]) {
      const { route, state } = await pass(api(given, '/cron/v1/backfill'));
      expect({ state, authorization: route.get('authorization') }).toEqual({
        state: signedOut,
        authorization: given.authorization,
      });
    }
    for (const path of ['/webhooks/idp/v1/user-created', '/cronies/v1', '/users/v1/me']) {
      expect((await pass(api(bearer('of the scheduler'), path))).route.get('authorization')).toBeNull();
    }
  });

  test('The SDK receives only the session on an API path, and the route receives the request without SDK headers', async () => {
    const given = {
      cookie:
        '__session=ey.b.c; __clerk_handshake=x; __clerk_handshake_nonce=x; __refresh_abc=x; theme=a%20b',
      'sec-fetch-dest': 'document',
      accept: 'text/html',
      'x-clerk-debug': 'true',
    };
    const { seen, headers, route } = await front().pass(
      api(given, '/users/v1/me?__clerk_handshake=x&a=b&__clerk_db_jwt=y'),
    );
    expect(seen?.url).toBe('http://localhost:3000/users/v1/me');
    expect(Object.fromEntries(seen?.headers ?? [])).toEqual({
      cookie: '__session=ey.b.c',
      'sec-fetch-dest': 'empty',
    });
    expect([...headers.keys()].filter((name) => name.startsWith('x-clerk'))).toEqual([]);
    expect(route.get('cookie')).toBe(given.cookie);
    expect(route.get('accept')).toBe('text/html');
    expect(route.get('x-clerk-debug')).toBeNull();
  });

  test.each([
    ['Bearer ey.b.c', 'Bearer ey.b.c'],
    ['bearer  ey.b.c', 'Bearer ey.b.c'],
    ['ey.b.c', 'Bearer ey.b.c'],
    ['Bearer ey.b.c x', null],
    ['Bearer ey.b.c==', null],
    ['Bearer ak_a.b.c', null],
    ['mt_a.b.c', null],
    ['Basic YTpi', null],
  ])(
    'The SDK and the route receive only a session token from this authorization header: %s',
    async (authorization, expected) => {
      const { seen, route } = await front().pass(api({ authorization }));
      expect(seen?.headers.get('authorization')).toBe(expected);
      expect(route.get('authorization')).toBe(expected);
    },
  );

  test('A session cookie does not replace a rejected bearer token, but is used if the authorization header has another scheme', async () => {
    const token = sessionToken();
    const { state } = await front().pass(api({ ...cookie(token), authorization: 'Bearer ak_0123' }));
    expect(state).toEqual(signedOut);
    const basic = await front().pass(api({ ...cookie(token), authorization: 'Basic YTpi' }));
    expect(basic.state).toEqual(signedIn(token));
  });

  test('A webhook request is unauthenticated, even if it contains a session', async () => {
    const { seen, state } = await front().pass(api(bearer(sessionToken()), '/webhooks/idp/v1/user-created'));
    expect(seen?.headers.get('authorization')).toBeNull();
    expect(state).toEqual(signedOut);
  });

  test.each<[string, () => Response | Promise<Response>]>([
    [
      'throws',
      () => {
        throw new TypeError('Cannot convert argument to a ByteString');
      },
    ],
    ['redirects', () => NextResponse.redirect('https://example.com')],
    ['does not respond', () => new Promise<Response>(() => {})],
  ])('A request is unauthenticated if the SDK %s for its credential', async (_fault, answer) => {
    vi.useFakeTimers();
    const accepts = acceptingSdk();
    const sdk = vi.fn<NextMiddleware>((request, event) =>
      request.headers.has('authorization') ? answer() : accepts(request, event),
    );
    const passed = front({ sdk }).pass(api(bearer(sessionToken())));
    await vi.advanceTimersByTimeAsync(5_000);
    vi.useRealTimers();
    const { headers, state } = await passed;
    expect(headers.get('location')).toBeNull();
    expect(state).toEqual(signedOut);
    expect(sdk).toHaveBeenCalledTimes(2);
  });
});

describe('Cache of credentials', () => {
  test.each([
    ['a bearer', bearer],
    ['a cookie', cookie],
  ])('The SDK is called once for requests with the same credential: %s', async (_kind, as) => {
    const { pass, sdk } = front();
    const token = sessionToken();
    for (let request = 0; request < 3; request += 1) {
      expect((await pass(api(as(token)))).state).toEqual(signedIn(token));
    }
    expect(sdk).toHaveBeenCalledTimes(1);
  });

  test('The SDK is called once for all requests without a credential', async () => {
    const { pass, sdk } = front();
    for (const [reason, headers] of [
      ['no-credential', {}],
      ['malformed', { authorization: 'Bearer ak_0' }],
      ['no-credential', { cookie: '__client_uat=0; theme=dark' }],
    ] as const) {
      const { state, route } = await pass(api(headers));
      expect(state).toEqual(signedOut);
      expect(route.get('x-identity-link-reason')).toBe(reason);
    }
    expect(sdk).toHaveBeenCalledTimes(1);
  });

  test('The same token in a bearer header and in a cookie counts as two credentials', async () => {
    const { pass, sdk } = front();
    const [one, other] = [sessionToken(), sessionToken()];
    for (const headers of [bearer(one), cookie(one), bearer(other), cookie(other)]) await pass(api(headers));
    expect(sdk).toHaveBeenCalledTimes(4);
    expect((await pass(api(bearer(one)))).state).toEqual(signedIn(one));
    expect((await pass(api(cookie(other)))).state).toEqual(signedIn(other));
    expect(sdk).toHaveBeenCalledTimes(4);
  });

  test('A bearer token takes precedence over the cookie of another user', async () => {
    const { pass } = front();
    const [one, other] = [sessionToken(), sessionToken()];
    for (let request = 0; request < 2; request += 1) {
      const { state, seen } = await pass(api({ ...cookie(one), ...bearer(other) }));
      expect(state).toEqual(signedIn(other));
      expect(seen?.headers.get('cookie') ?? null).toBeNull();
    }
  });

  test('The SDK is called for each request whose cookies contain two tokens', async () => {
    const { pass, sdk } = front();
    const headers = {
      cookie: `__session=${sessionToken()}; __session_abc=${sessionToken()}; __client_uat=1`,
    };
    for (let request = 0; request < 2; request += 1) await pass(api(headers));
    expect(sdk).toHaveBeenCalledTimes(2);
  });

  test('A credential is cached until its token expires, and at most 60 s', async () => {
    vi.useFakeTimers();
    const { pass, sdk } = front();
    const seconds = Math.floor(Date.now() / 1000);
    const [short, long] = [sessionToken({ exp: seconds + 10 }), sessionToken({ exp: seconds + 3600 })];
    const ask = async () => {
      for (const token of [short, long]) await pass(api(bearer(token)));
      return sdk.mock.calls.length;
    };
    expect(await ask()).toBe(2);
    vi.advanceTimersByTime(8_900);
    expect(await ask(), 'both are cached').toBe(2);
    vi.advanceTimersByTime(1_200);
    expect(await ask(), 'one has expired').toBe(3);
    vi.advanceTimersByTime(50_000);
    expect(await ask(), 'the other is 60 s old').toBe(5);
    vi.useRealTimers();
  });

  test('The SDK is called for each request with a rejected credential', async () => {
    const refuses = vi.fn<NextMiddleware>(({ headers: given }) => {
      const headers = new Headers(given);
      headers.set('x-clerk-auth-status', 'signed-out');
      return NextResponse.next({ request: { headers } });
    });
    const { pass, sdk } = front({ sdk: refuses });
    const headers = bearer(sessionToken());
    for (let request = 0; request < 3; request += 1)
      expect((await pass(api(headers))).state).toEqual(signedOut);
    expect(sdk).toHaveBeenCalledTimes(3);
  });

  test('Each process has its own cache of credentials', async () => {
    const headers = bearer(sessionToken());
    const { pass } = front();
    await pass(api(headers));
    const { pass: afterwards, sdk } = front();
    await afterwards(api(headers));
    expect(sdk).toHaveBeenCalledTimes(1);
  });

  test('Forged auth state headers are removed from a request with a cached token', async () => {
    const { pass } = front();
    const [own, others] = [sessionToken(), sessionToken()];
    await pass(api(bearer(others)));
    const forged = {
      'x-clerk-auth-status': 'signed-in',
      'x-clerk-auth-token': others,
      'x-clerk-auth-signature': `signed ${others}`,
      'x-clerk-request-data': 'x',
    };
    for (let request = 0; request < 2; request += 1) {
      const { state, route } = await pass(api({ ...bearer(own), ...forged }));
      expect(state).toEqual(signedIn(own));
      expect(route.get('x-clerk-request-data')).toBeNull();
    }
    expect((await pass(api(forged))).state).toEqual(signedOut);
  });
});

const handshake = `${encoded({ alg: 'RS256', typ: 'JWT', kid: 'ins_1' })}.${encoded({})}.x`;

describe('Pages', () => {
  test('On a page, the SDK receives its query parameters, except those that cause a redirect or a call to the provider', async () => {
    const { seen, headers } = await front().pass(
      api(
        { authorization: 'Bearer ak_0123', cookie: '__session=ey.b.c; __refresh_abc=b; __clerk_db_jwt=c' },
        `/account?__clerk_handshake=${handshake}&__clerk_redirect_url=https://evil.example`,
      ),
    );
    expect(seen?.url).toBe(`http://localhost:3000/account?__clerk_handshake=${handshake}`);
    expect(seen?.headers.get('authorization')).toBeNull();
    expect(seen?.headers.get('cookie')).toBe('__session=ey.b.c; __clerk_db_jwt=c');
    expect([...headers.keys()].filter((name) => /^x-clerk-auth-|rewrite/.test(name))).toEqual([]);
  });

  const SESSION = '__session=ey.b.c; __client_uat=1';
  const withNonce = () =>
    api(
      { cookie: `${SESSION}; __clerk_handshake_nonce=x`, 'sec-fetch-dest': 'document' },
      '/account?__clerk_handshake_nonce=x&a=b',
    );
  const seenBy = (sdk: ReturnType<typeof acceptingSdk>) =>
    sdk.mock.calls.map(([{ url, headers }]) => ({
      url,
      cookie: headers.get('cookie'),
      destination: headers.get('sec-fetch-dest'),
    }));
  const bySession = {
    url: 'http://localhost:3000/account?a=b',
    cookie: SESSION,
    destination: 'empty',
  };
  const signedOutPage = { url: 'http://localhost:3000/account', cookie: null, destination: 'empty' };

  test.each<[string, () => Response | Promise<Response>]>([
    [
      'throws',
      () => {
        throw new Error('handshake');
      },
    ],
    ['never responds', () => new Promise<Response>(() => {})],
    ['redirects without cookies', () => NextResponse.redirect('http://localhost:3000/account')],
    [
      'starts another handshake',
      () =>
        NextResponse.redirect('https://clerk.example/v1/client/handshake', {
          headers: { 'set-cookie': '__clerk_redirect_count=1' },
        }),
    ],
  ])(
    'If the SDK %s for a nonce, the page is served by its session and no handshake starts',
    async (_failure, respond) => {
      vi.useFakeTimers();
      const accepts = acceptingSdk();
      const sdk = vi.fn<NextMiddleware>((request, event) =>
        request.nextUrl.searchParams.has('__clerk_handshake_nonce') ? respond() : accepts(request, event),
      );
      const passed = front({ sdk }).pass(withNonce());
      await vi.advanceTimersByTimeAsync(3_000);
      vi.useRealTimers();
      const { headers, state } = await passed;
      expect(headers.get('location')).toBeNull();
      expect(state).toEqual(signedIn('ey.b.c'));
      expect(seenBy(sdk).slice(1)).toEqual([bySession]);
    },
  );

  test('If the SDK fails for the nonce and for the session, the page is served signed out', async () => {
    const accepts = acceptingSdk();
    const sdk = vi.fn<NextMiddleware>((request, event) => {
      if (request.cookies.has('__session')) throw new Error('session');
      return accepts(request, event);
    });
    expect((await front({ sdk }).pass(withNonce())).state).toEqual(signedOut);
    expect(seenBy(sdk).slice(1)).toEqual([bySession, signedOutPage]);
  });

  test('A nonce for which the SDK sets cookies is not used a second time', async () => {
    const sdk = vi.fn<NextMiddleware>(() =>
      NextResponse.redirect('http://localhost:3000/account', { headers: { 'set-cookie': '__session=x' } }),
    );
    const { headers } = await front({ sdk }).pass(withNonce());
    expect(headers.get('location')).toBe('http://localhost:3000/account');
    expect(sdk).toHaveBeenCalledTimes(1);
  });

  test('A page request with a token of a foreign party is served signed out', async () => {
    const accepts = acceptingSdk();
    const sdk = vi.fn<NextMiddleware>((request, event) =>
      request.cookies.has('__session') ? foreignParty() : accepts(request, event),
    );
    const { headers, state } = await front({ sdk }).pass(api({ cookie: SESSION }, '/account'));
    expect(state).toEqual(signedOut);
    expect([...headers.keys()]).not.toContain('x-foreign-party');
    expect(seenBy(sdk).slice(1)).toEqual([signedOutPage]);
  });

  test('The SDK receives no malformed handshake or session token on a page', async () => {
    const odd = `${encoded({ alg: 'RS256', typ: 'JWT', kid: 'a\nb' })}.${encoded({})}.x`;
    const cookie = `__clerk_handshake=${odd}; __session=a.b.c==; __session_x=a.b; __clerk_handshake_nonce=y; __client_uat=1`;
    const { seen } = await front().pass(
      api({ cookie, 'x-clerk-debug': 'true' }, `/account?__clerk_handshake=${odd}&a=b`),
    );
    expect(seen?.url).toBe('http://localhost:3000/account?a=b');
    expect(seen?.headers.get('cookie')).toBe('__clerk_handshake_nonce=y; __client_uat=1');
    expect(seen?.headers.has('x-clerk-debug')).toBe(false);
  });
});

test('Requests to the proxy path reach the SDK unchanged in the local stack and are rejected elsewhere', async () => {
  const request = api({ authorization: 'Bearer ak_0123' }, '/__clerk/v1/client?__clerk_redirect_url=x');
  expect((await front({ isProxy: true }).pass(request)).seen).toBe(request);
  expect((await front().pass(request)).seen).toBeUndefined();
});

test.each(['status', 'token', 'signature', 'reason', 'message', 'whatever-comes-next'])(
  'A route does not receive the x-clerk-auth-%s header of a caller',
  async (part) => {
    const forged = { [`x-clerk-auth-${part}`]: 'forged', 'x-clerk-request-data': 'forged' };
    const { route } = await front().pass(api({ ...forged, ...bearer(sessionToken()) }));
    expect([...route].filter(([, value]) => value === 'forged')).toEqual([]);
  },
);

test('A server action without a content length is rejected without reading its body', async () => {
  const pull = vi.fn();
  const request = new NextRequest('http://localhost:3000/sign-in', {
    method: 'POST',
    headers: { host: 'localhost:3000', 'next-action': '7f'.repeat(21), 'content-type': 'text/plain' },
    body: new ReadableStream({ pull }, { highWaterMark: 0 }),
    duplex: 'half',
  });
  expect((await front().pass(request)).status).toBe(405);
  expect(pull).not.toHaveBeenCalled();
});

describe('The middleware limits the cookies of a request to 180', () => {
  const own = (count: number) => Array.from({ length: count }, (_, index) => `own${index}=a%20b`);

  test.each(['/users/v1/me', '/account', '/unknown'])('%s receives 180 cookies unchanged', async (path) => {
    const cookie = own(180).join('; ');
    expect((await front().pass(api({ cookie }, path))).route.get('cookie')).toBe(cookie);
  });

  test.each(['/users/v1/me', '/account', '/unknown'])(
    "%s receives the SDK's cookies and then the first ones of all other cookies",
    async (path) => {
      const token = sessionToken();
      const cookie = [...own(1_900), `__session=${token}`, '__client_uat=1'].join('; ');
      const { route } = await front().pass(api({ cookie }, path));
      expect(route.get('cookie')?.split('; ')).toEqual([`__session=${token}`, '__client_uat=1', ...own(178)]);
    },
  );

  test('A session is found among any number of cookies', async () => {
    const token = sessionToken();
    const cookie = [...own(1_900), `__session=${token}`, '__client_uat=1'].join('; ');
    expect((await front().pass(api({ cookie }))).state).toEqual(signedIn(token));
  });

  test('The SDK receives at most 180 session cookies', async () => {
    const cookie = Array.from({ length: 300 }, (_, index) => `__session_${index}=${sessionToken()}`).join(
      '; ',
    );
    const { seen } = await front().pass(api({ cookie }));
    expect(seen?.headers.get('cookie')?.split('; ')).toHaveLength(180);
  });
});

test.each(['/users/v1/me', '/webhooks/idp/v1/user-created', '/health/alive', '/account', '/unknown'])(
  'The middleware responds with 400 to more than 100 query parameters on %s',
  async (path) => {
    const { pass } = front();
    const statusWith = async (count: number) =>
      (await pass(api({}, `${path}?${'a=b&'.repeat(count)}`))).status;
    expect(await statusWith(100)).toBe(200);
    expect(await statusWith(101)).toBe(400);
  },
);

describe('An SDK that supplies no auth state', () => {
  const silent = () => front({ sdk: vi.fn<NextMiddleware>(() => NextResponse.next()) });

  test.each(['/webhooks/idp/v1/user-created', '/health/ready'])(
    'An SDK without auth state does not affect %s',
    async (path) => {
      const { status, route } = await silent().pass(api({ 'x-clerk-auth-status': 'signed-in' }, path));
      expect({ status, state: route.get('x-clerk-auth-status') }).toEqual({ status: 200, state: null });
    },
  );

  test('An SDK without auth state makes requests to other API paths fail', async () => {
    await expect(silent().pass(api())).rejects.toThrow('The SDK supplied no auth state');
  });
});

describe('Allowed methods', () => {
  const methods = (pathname: string) => allowedMethods(pathname).join(' ');

  test.each([
    '/users/v1/me/',
    '/users/v1/me.rsc',
    '/users/v1/me.segments/_tree.segment.rsc',
    '/users/v1/%6de',
    '/users/v1/%ff',
    '/users//me',
    '/users/../me',
    '/users/v1/a\\b',
    '/users/v1/a\tb',
    '/_next/data/x/users/v1/me.json',
    '/_next/image',
    '/_global-error',
    '/sign-in/%ff',
    '/account.rsc',
    '//',
    '',
    'users',
  ])('The path %j allows no method', (pathname) => {
    expect(methods(pathname)).toBe('');
  });

  test.each([
    ['/users/v1/me', 'GET HEAD POST PUT PATCH DELETE OPTIONS'],
    ['/users/v1/caf%C3%A9', 'GET HEAD POST PUT PATCH DELETE OPTIONS'],
    ['/users/v1/a%20b', 'GET HEAD POST PUT PATCH DELETE OPTIONS'],
    ['/account/', 'GET HEAD POST OPTIONS'],
    ['/', 'GET HEAD POST OPTIONS'],
    ['/_next/static/chunks/a.js', 'GET HEAD'],
    ['/unknown', 'GET HEAD POST'],
  ])('The path %s allows %s', (pathname, expected) => {
    expect(methods(pathname)).toBe(expected);
  });

  test('A path or method that is not allowed gets a 404 or 405 without a call of the SDK', async () => {
    const { pass, sdk } = front();
    const statusOf = async (path: string, init: { method?: string; body?: string } = {}) =>
      (await pass(new NextRequest(`http://localhost:3000${path}`, init))).status;
    expect(await statusOf('/users/v1/me.rsc')).toBe(404);
    expect(await statusOf('/_global-error')).toBe(404);
    expect(await statusOf('/unknown', { method: 'POST' })).toBe(405);
    expect(await statusOf('/unknown', { method: 'PUT' })).toBe(405);
    expect(await statusOf('/sign-in', { method: 'POST', body: '[]' })).toBe(405);
    expect(sdk).not.toHaveBeenCalled();
  });
});

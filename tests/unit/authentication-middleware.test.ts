import { type NextFetchEvent, type NextMiddleware, NextRequest, NextResponse } from 'next/server';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { authenticationMiddleware } from '#lib/idp/authentication-middleware';
import { foreignParty } from '#lib/idp/authorized-party';
import { log } from '#lib/log';
import { allowedMethods, isPage } from '#lib/routing/paths';

// The authentication middleware passes requests to the middleware of the identity provider's SDK (Clerk). The SDK's result is
// the auth state. The authentication middleware passes the auth state to the route in request headers that start with
// `x-clerk-auth-`.
vi.mock('#lib/env', () => ({ environment: () => ({ IDP_SECRET_KEY: 'sk_test_of_this_test' }) }));

beforeEach(() => {
  vi.restoreAllMocks();
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
])('isPage() returns false for a path without a page: %s', (pathname) => {
  expect(isPage(pathname)).toBe(false);
});

const event: NextFetchEvent = Object.create(null);
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
/** Returns a GET request. */
const get = (headers: Record<string, string> = {}, path = '/users/v1/me') =>
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

/** Creates the middleware of the service with the given SDK middleware. `pass` runs the service's middleware for a request. */
function setUp({ isProxy = false, sdk = acceptingSdk() } = {}) {
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
        /** The request that the SDK received, or undefined if the SDK was not called. */
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
  test('A route below /cron receives any bearer token but no session. Other API routes receive a bearer token only if it has the form of a session token', async () => {
    const { pass } = setUp();
    for (const given of [
      bearer('of the scheduler'),
      { ...bearer(sessionToken()), ...cookie(sessionToken()) },
    ]) {
      const { route, state } = await pass(get(given, '/cron/v1/backfill'));
      expect({ state, authorization: route.get('authorization') }).toEqual({
        state: signedOut,
        authorization: given.authorization,
      });
    }
    for (const path of ['/webhooks/idp/v1/user-created', '/cronies/v1', '/users/v1/me']) {
      expect((await pass(get(bearer('of the scheduler'), path))).route.get('authorization')).toBeNull();
    }
  });

  test('For an API request, the SDK receives only the credential of the client, such as the session cookie. The route receives all cookies and headers such as accept, but no x-clerk- headers', async () => {
    const given = {
      cookie:
        '__session=ey.b.c; __clerk_handshake=x; __clerk_handshake_nonce=x; __refresh_abc=x; theme=a%20b',
      'sec-fetch-dest': 'document',
      accept: 'text/html',
      'x-clerk-debug': 'true',
    };
    const { seen, headers, route } = await setUp().pass(
      get(given, '/users/v1/me?__clerk_handshake=x&a=b&__clerk_db_jwt=y'),
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
    'The SDK and the route receive the authorization header %j as %j (null means no header)',
    async (authorization, expected) => {
      const { seen, route } = await setUp().pass(get({ authorization }));
      expect(seen?.headers.get('authorization')).toBe(expected);
      expect(route.get('authorization')).toBe(expected);
    },
  );

  test('A session cookie does not replace a rejected bearer token. The cookie is used if the scheme of the authorization header is not Bearer', async () => {
    const token = sessionToken();
    const { state } = await setUp().pass(get({ ...cookie(token), authorization: 'Bearer ak_0123' }));
    expect(state).toEqual(signedOut);
    const basic = await setUp().pass(get({ ...cookie(token), authorization: 'Basic YTpi' }));
    expect(basic.state).toEqual(signedIn(token));
  });

  test('A webhook request is unauthenticated, even if it contains a session token', async () => {
    const { seen, state } = await setUp().pass(get(bearer(sessionToken()), '/webhooks/idp/v1/user-created'));
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
  ])(
    'If the SDK %s after it received the credential of a request, the request is unauthenticated',
    async (_failure, respond) => {
      vi.useFakeTimers();
      const accepts = acceptingSdk();
      const sdk = vi.fn<NextMiddleware>((request, event) =>
        request.headers.has('authorization') ? respond() : accepts(request, event),
      );
      const passed = setUp({ sdk }).pass(get(bearer(sessionToken())));
      await vi.advanceTimersByTimeAsync(5_000);
      vi.useRealTimers();
      const { headers, state } = await passed;
      expect(headers.get('location')).toBeNull();
      expect(state).toEqual(signedOut);
      expect(sdk).toHaveBeenCalledTimes(2);
    },
  );
});

describe('Cache of credentials', () => {
  test.each([
    ['a bearer token', bearer],
    ['a cookie', cookie],
  ])('The SDK is called only once for three requests with the same credential: %s', async (_kind, as) => {
    const { pass, sdk } = setUp();
    const token = sessionToken();
    for (let request = 0; request < 3; request += 1) {
      expect((await pass(get(as(token)))).state).toEqual(signedIn(token));
    }
    expect(sdk).toHaveBeenCalledTimes(1);
  });

  test('The SDK is called only once for all requests without a credential or with a malformed credential', async () => {
    const { pass, sdk } = setUp();
    for (const [reason, headers] of [
      ['no-credential', {}],
      ['malformed', { authorization: 'Bearer ak_0' }],
      ['no-credential', { cookie: '__client_uat=0; theme=dark' }],
    ] as const) {
      const { state, route } = await pass(get(headers));
      expect(state).toEqual(signedOut);
      expect(route.get('x-identity-link-reason')).toBe(reason);
    }
    expect(sdk).toHaveBeenCalledTimes(1);
  });

  test('The same token in a bearer header and in a cookie counts as two credentials', async () => {
    const { pass, sdk } = setUp();
    const [one, other] = [sessionToken(), sessionToken()];
    for (const headers of [bearer(one), cookie(one), bearer(other), cookie(other)]) await pass(get(headers));
    expect(sdk).toHaveBeenCalledTimes(4);
    expect((await pass(get(bearer(one)))).state).toEqual(signedIn(one));
    expect((await pass(get(cookie(other)))).state).toEqual(signedIn(other));
    expect(sdk).toHaveBeenCalledTimes(4);
  });

  test('A bearer token takes precedence over a session cookie with a different token', async () => {
    const { pass } = setUp();
    const [one, other] = [sessionToken(), sessionToken()];
    for (let request = 0; request < 2; request += 1) {
      const { state, seen } = await pass(get({ ...cookie(one), ...bearer(other) }));
      expect(state).toEqual(signedIn(other));
      expect(seen?.headers.get('cookie') ?? null).toBeNull();
    }
  });

  test('The SDK is called for each request whose cookies contain two tokens', async () => {
    const { pass, sdk } = setUp();
    const headers = {
      cookie: `__session=${sessionToken()}; __session_abc=${sessionToken()}; __client_uat=1`,
    };
    for (let request = 0; request < 2; request += 1) await pass(get(headers));
    expect(sdk).toHaveBeenCalledTimes(2);
  });

  test('A credential is cached until its token expires, but for at most 60 s', async () => {
    vi.useFakeTimers();
    const { pass, sdk } = setUp();
    const seconds = Math.floor(Date.now() / 1000);
    const [short, long] = [sessionToken({ exp: seconds + 10 }), sessionToken({ exp: seconds + 3600 })];
    const sendBoth = async () => {
      for (const token of [short, long]) await pass(get(bearer(token)));
      return sdk.mock.calls.length;
    };
    expect(await sendBoth()).toBe(2);
    vi.advanceTimersByTime(8_900);
    expect(await sendBoth(), 'both tokens are cached').toBe(2);
    vi.advanceTimersByTime(1_200);
    expect(await sendBoth(), 'the short-lived token has expired').toBe(3);
    vi.advanceTimersByTime(50_000);
    expect(await sendBoth(), 'one token has expired, and the other was verified more than 60 s ago').toBe(5);
    vi.useRealTimers();
  });

  test('The SDK is called for each request with a rejected credential', async () => {
    const rejectingSdk = vi.fn<NextMiddleware>(({ headers: given }) => {
      const headers = new Headers(given);
      headers.set('x-clerk-auth-status', 'signed-out');
      return NextResponse.next({ request: { headers } });
    });
    const { pass, sdk } = setUp({ sdk: rejectingSdk });
    const headers = bearer(sessionToken());
    for (let request = 0; request < 3; request += 1)
      expect((await pass(get(headers))).state).toEqual(signedOut);
    expect(sdk).toHaveBeenCalledTimes(3);
  });

  test('Each instance of the middleware has its own cache of credentials', async () => {
    const headers = bearer(sessionToken());
    const { pass } = setUp();
    await pass(get(headers));
    const { pass: afterwards, sdk } = setUp();
    await afterwards(get(headers));
    expect(sdk).toHaveBeenCalledTimes(1);
  });

  test('Forged auth state headers with the cached token of another caller do not change the auth state of a request', async () => {
    const { pass } = setUp();
    const [own, others] = [sessionToken(), sessionToken()];
    await pass(get(bearer(others)));
    const forged = {
      'x-clerk-auth-status': 'signed-in',
      'x-clerk-auth-token': others,
      'x-clerk-auth-signature': `signed ${others}`,
      'x-clerk-request-data': 'x',
    };
    for (let request = 0; request < 2; request += 1) {
      const { state, route } = await pass(get({ ...bearer(own), ...forged }));
      expect(state).toEqual(signedIn(own));
      expect(route.get('x-clerk-request-data')).toBeNull();
    }
    expect((await pass(get(forged))).state).toEqual(signedOut);
  });
});

// A handshake renews an expired session. The SDK redirects a page request to the provider. The provider redirects back with a
// handshake token or with a nonce. The handshake token contains the new cookies. The SDK exchanges a nonce for a handshake
// token.
const handshake = `${encoded({ alg: 'RS256', typ: 'JWT', kid: 'ins_1' })}.${encoded({})}.x`;

describe('Pages', () => {
  test('For a page request, the SDK receives the handshake token and the session, but no redirect address, refresh token or bearer token', async () => {
    const { seen, headers } = await setUp().pass(
      get(
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
    get(
      { cookie: `${SESSION}; __clerk_handshake_nonce=x`, 'sec-fetch-dest': 'document' },
      '/account?__clerk_handshake_nonce=x&a=b',
    );
  const seenBy = (sdk: ReturnType<typeof acceptingSdk>) =>
    sdk.mock.calls.map(([{ url, headers }]) => ({
      url,
      cookie: headers.get('cookie'),
      destination: headers.get('sec-fetch-dest'),
    }));
  /** The second request that the SDK gets. It has the session cookies, but no handshake nonce. */
  const bySession = {
    url: 'http://localhost:3000/account?a=b',
    cookie: SESSION,
    destination: 'empty',
  };
  /** The last request that the SDK gets. It has no credential. */
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
    'If the SDK %s when it gets a handshake nonce, the middleware calls the SDK again without the nonce and does not redirect',
    async (_failure, respond) => {
      vi.useFakeTimers();
      const accepts = acceptingSdk();
      const sdk = vi.fn<NextMiddleware>((request, event) =>
        request.nextUrl.searchParams.has('__clerk_handshake_nonce') ? respond() : accepts(request, event),
      );
      const passed = setUp({ sdk }).pass(withNonce());
      await vi.advanceTimersByTimeAsync(3_000);
      vi.useRealTimers();
      const { headers, state } = await passed;
      expect(headers.get('location')).toBeNull();
      expect(state).toEqual(signedIn('ey.b.c'));
      expect(seenBy(sdk).slice(1)).toEqual([bySession]);
    },
  );

  test('If the SDK fails for a handshake nonce and then for the session cookie, the page request has the status signed-out', async () => {
    const accepts = acceptingSdk();
    const sdk = vi.fn<NextMiddleware>((request, event) => {
      if (request.cookies.has('__session')) throw new Error('session');
      return accepts(request, event);
    });
    expect((await setUp({ sdk }).pass(withNonce())).state).toEqual(signedOut);
    expect(seenBy(sdk).slice(1)).toEqual([bySession, signedOutPage]);
  });

  test('If the SDK sets cookies for a handshake nonce, the middleware does not call the SDK again', async () => {
    const sdk = vi.fn<NextMiddleware>(() =>
      NextResponse.redirect('http://localhost:3000/account', { headers: { 'set-cookie': '__session=x' } }),
    );
    const { headers } = await setUp({ sdk }).pass(withNonce());
    expect(headers.get('location')).toBe('http://localhost:3000/account');
    expect(sdk).toHaveBeenCalledTimes(1);
  });

  test('If the session token of a page request was issued for an unauthorized origin, the request has the status signed-out', async () => {
    const accepts = acceptingSdk();
    const sdk = vi.fn<NextMiddleware>((request, event) =>
      request.cookies.has('__session') ? foreignParty() : accepts(request, event),
    );
    const { headers, state } = await setUp({ sdk }).pass(get({ cookie: SESSION }, '/account'));
    expect(state).toEqual(signedOut);
    expect([...headers.keys()]).not.toContain('x-foreign-party');
    expect(seenBy(sdk).slice(1)).toEqual([signedOutPage]);
  });

  test('A page receives an application cookie whose name contains the name of an SDK cookie, such as my__session', async () => {
    const cookie = 'my__session=a; my__clerk_handshake=b';
    const { route } = await setUp().pass(get({ cookie }, '/account'));
    expect(route.get('cookie')).toBe(cookie);
  });

  test('For a page request, the SDK receives no malformed handshake token and no malformed session token', async () => {
    const odd = `${encoded({ alg: 'RS256', typ: 'JWT', kid: 'a\nb' })}.${encoded({})}.x`;
    const cookie = `__clerk_handshake=${odd}; __session=a.b.c==; __session_x=a.b; __clerk_handshake_nonce=y; __client_uat=1`;
    const { seen } = await setUp().pass(
      get({ cookie, 'x-clerk-debug': 'true' }, `/account?__clerk_handshake=${odd}&a=b`),
    );
    expect(seen?.url).toBe('http://localhost:3000/account?a=b');
    expect(seen?.headers.get('cookie')).toBe('__clerk_handshake_nonce=y; __client_uat=1');
    expect(seen?.headers.has('x-clerk-debug')).toBe(false);
  });
});

test("The SDK receives a request to /__clerk unchanged if the service proxies Clerk's Frontend API. Otherwise, the SDK does not receive the request", async () => {
  const request = get({ authorization: 'Bearer ak_0123' }, '/__clerk/v1/client?__clerk_redirect_url=x');
  expect((await setUp({ isProxy: true }).pass(request)).seen).toBe(request);
  expect((await setUp().pass(request)).seen).toBeUndefined();
});

test.each(['status', 'token', 'signature', 'reason', 'message', 'whatever-comes-next'])(
  'A route does not receive the x-clerk-auth-%s header of a caller',
  async (part) => {
    const forged = { [`x-clerk-auth-${part}`]: 'forged', 'x-clerk-request-data': 'forged' };
    const { route } = await setUp().pass(get({ ...forged, ...bearer(sessionToken()) }));
    expect([...route].filter(([, value]) => value === 'forged')).toEqual([]);
  },
);

test('The middleware responds with 405 to a server action without a Content-Length header and does not read the body', async () => {
  const pull = vi.fn();
  const request = new NextRequest('http://localhost:3000/sign-in', {
    method: 'POST',
    headers: { host: 'localhost:3000', 'next-action': '7f'.repeat(21), 'content-type': 'text/plain' },
    body: new ReadableStream({ pull }, { highWaterMark: 0 }),
    duplex: 'half',
  });
  expect((await setUp().pass(request)).status).toBe(405);
  expect(pull).not.toHaveBeenCalled();
});

describe('Limit of 180 cookies', () => {
  const own = (count: number) => Array.from({ length: count }, (_, index) => `own${index}=a%20b`);

  test.each(['/users/v1/me', '/account', '/unknown'])(
    'If a request to %s has 180 cookies, the middleware passes them unchanged',
    async (path) => {
      const cookie = [...own(179), `__session=${sessionToken()}`].join('; ');
      expect((await setUp().pass(get({ cookie }, path))).route.get('cookie')).toBe(cookie);
    },
  );

  test.each(['/users/v1/me', '/account', '/unknown'])(
    "If a request to %s has 1,902 cookies, the middleware passes only the SDK's two cookies and the first 178 other cookies",
    async (path) => {
      const token = sessionToken();
      const cookie = [`__session=${token}`, ...own(1_900), '__client_uat=1'].join('; ');
      const { route } = await setUp().pass(get({ cookie }, path));
      expect(route.get('cookie')?.split('; ')).toEqual([`__session=${token}`, '__client_uat=1', ...own(178)]);
    },
  );

  test('A session cookie after 1,900 other cookies authenticates a request', async () => {
    const token = sessionToken();
    const cookie = [...own(1_900), `__session=${token}`, '__client_uat=1'].join('; ');
    expect((await setUp().pass(get({ cookie }))).state).toEqual(signedIn(token));
  });

  test('The SDK receives at most 180 session cookies', async () => {
    const cookie = Array.from({ length: 300 }, (_, index) => `__session_${index}=${sessionToken()}`).join(
      '; ',
    );
    const { seen } = await setUp().pass(get({ cookie }));
    expect(seen?.headers.get('cookie')?.split('; ')).toHaveLength(180);
  });
});

test.each(['/users/v1/me', '/webhooks/idp/v1/user-created', '/health/alive', '/account', '/unknown'])(
  'The middleware responds with 400 to more than 100 query parameters on %s',
  async (path) => {
    const { pass } = setUp();
    const statusWith = async (count: number) =>
      (await pass(get({}, `${path}?${'&a=b'.repeat(count)}`))).status;
    expect(await statusWith(100)).toBe(200);
    expect(await statusWith(101)).toBe(400);
  },
);

describe('An SDK without auth state', () => {
  const silent = () => setUp({ sdk: vi.fn<NextMiddleware>(() => NextResponse.next()) });

  test.each(['/webhooks/idp/v1/user-created', '/health/ready'])(
    'An SDK that supplies no auth state does not affect requests to %s',
    async (path) => {
      const { status, route } = await silent().pass(get({ 'x-clerk-auth-status': 'signed-in' }, path));
      expect({ status, state: route.get('x-clerk-auth-status') }).toEqual({ status: 200, state: null });
    },
  );

  test('A request to /users/v1/me fails if the SDK supplies no auth state', async () => {
    await expect(silent().pass(get())).rejects.toThrow('The SDK supplied no auth state');
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

  // POST to a page or to an unknown path is only for server actions.
  test.each([
    ['/users/v1/me', 'GET HEAD POST PUT PATCH DELETE OPTIONS'],
    ['/users/v1/caf%C3%A9', 'GET HEAD POST PUT PATCH DELETE OPTIONS'],
    ['/users/v1/a%20b', 'GET HEAD POST PUT PATCH DELETE OPTIONS'],
    ['/account/', 'GET HEAD POST OPTIONS'],
    ['/', 'GET HEAD POST OPTIONS'],
    ['/_next/static/chunks/a.js', 'GET HEAD'],
    ['/unknown', 'GET HEAD POST'],
  ])('The path %s allows the methods %s', (pathname, expected) => {
    expect(methods(pathname)).toBe(expected);
  });

  test('A path that is not served gets a 404. A method that is not allowed and a POST that is not a server action get a 405. The SDK is not called', async () => {
    const { pass, sdk } = setUp();
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

/** Returns an SDK middleware that reports the given auth state for each request. */
const reporting = (
  { token, ...state }: { status: string; user?: string; reason?: string; token?: string },
  headers: Record<string, string> = {},
) =>
  vi.fn<NextMiddleware>(({ headers: given }) => {
    const passed = new Headers(given);
    passed.set('x-clerk-auth-token', token ?? given.get('authorization')?.replace('Bearer ', '') ?? '');
    passed.set('x-clerk-auth-status', state.status);
    if (state.user !== undefined) passed.set('x-identity-link-user', state.user);
    if (state.reason !== undefined) passed.set('x-identity-link-reason', state.reason);
    const response = NextResponse.next({ request: { headers: passed } });
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
    return response;
  });

describe('The auth state of an API request', () => {
  test('An auth state is not cached if its token differs from the token of the request', async () => {
    const { pass, sdk } = setUp({
      sdk: reporting({ status: 'signed-in', user: 'user_1', token: 'another' }),
    });
    const headers = bearer(sessionToken());
    for (let request = 0; request < 2; request += 1) await pass(get(headers));
    expect(sdk).toHaveBeenCalledTimes(2);
  });

  test('A route receives no reason for a verified session', async () => {
    const { route, state } = await setUp().pass(get(bearer(sessionToken())));
    expect(state[0]).toBe('signed-in');
    expect(route.has('x-identity-link-reason')).toBe(false);
  });

  test('A user that the SDK reports with the status signed-out is ignored and not cached', async () => {
    const { pass, sdk } = setUp({ sdk: reporting({ status: 'signed-out', user: 'user_1' }) });
    const headers = bearer(sessionToken());
    for (let request = 0; request < 2; request += 1) {
      const { route } = await pass(get(headers));
      expect([...route.keys()].filter((name) => /identity-link-(?:user|proof)/.test(name))).toEqual([]);
    }
    expect(sdk).toHaveBeenCalledTimes(2);
  });

  test.each([
    ['signed-in', 'no-user-id', '', 'no-user-id'],
    ['signed-in', 'a word of a client', '', 'not-verified'],
    ['signed-in', undefined, 'token-expired', 'not-verified'],
    ['signed-out', 'no-user-id', 'token-expired', 'expired'],
    ['signed-out', undefined, '', 'not-verified'],
  ])(
    'For the auth status %s, x-identity-link-reason %j and x-clerk-auth-reason %j, the route receives the reason %s',
    async (status, reason, sdkReason, expected) => {
      const state = { status, ...(reason === undefined ? {} : { reason }) };
      const sdk = reporting(state, { 'x-clerk-auth-reason': sdkReason });
      const { route } = await setUp({ sdk }).pass(get(bearer(sessionToken())));
      expect(route.get('x-identity-link-reason')).toBe(expected);
    },
  );

  test.each([
    ['a-later-reason', [{ reason: 'a-later-reason' }]],
    ['x'.repeat(100), [{ reason: 'x'.repeat(100) }]],
    ['x'.repeat(101), [{ reason: undefined }]],
    ['Odd', [{ reason: undefined }]],
    ['odd word', [{ reason: undefined }]],
    ['', [{ reason: undefined }]],
    ['token-expired', []],
  ])(
    'If the SDK rejects a token for an unknown reason, the middleware logs a warning, but at most once a minute. The warning contains the reason only if the reason consists of 1 to 100 lowercase letters and hyphens: %j',
    async (word, logged) => {
      const sdk = reporting({ status: 'signed-out' }, { 'x-clerk-auth-reason': word });
      const { pass } = setUp({ sdk });
      await pass(get());
      expect(log.warn).not.toHaveBeenCalled();
      for (let request = 0; request < 2; request += 1) await pass(get(bearer(sessionToken())));
      expect(vi.mocked(log.warn).mock.calls).toEqual(
        logged.map((fields) => [fields, 'credential not verified']),
      );
    },
  );

  test('A failure of the SDK is logged, and the route receives the reason not-verified', async () => {
    const accepts = acceptingSdk();
    const sdk = vi.fn<NextMiddleware>((request, event) => {
      if (request.headers.has('authorization')) throw new TypeError('out of order');
      return accepts(request, event);
    });
    const { route } = await setUp({ sdk }).pass(get(bearer(sessionToken())));
    expect(route.get('x-identity-link-reason')).toBe('not-verified');
    expect(log.warn).toHaveBeenCalledExactlyOnceWith(
      { error: expect.objectContaining({ name: 'TypeError' }) },
      'credential not verified',
    );
  });

  test('The SDK has 4 s to verify a credential', async () => {
    vi.useFakeTimers();
    const accepts = acceptingSdk();
    const sdk = vi.fn<NextMiddleware>((request, event) =>
      request.headers.has('authorization') ? new Promise<Response>(() => {}) : accepts(request, event),
    );
    const passed = setUp({ sdk }).pass(get(bearer(sessionToken())));
    await vi.advanceTimersByTimeAsync(3_999);
    expect(sdk).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(sdk).toHaveBeenCalledTimes(2);
    vi.useRealTimers();
    expect((await passed).state).toEqual(signedOut);
  });

  test('If the process is suspended while the SDK verifies a credential, the time limit of 4 s starts again, but only one time', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const now = vi.spyOn(performance, 'now').mockReturnValue(0);
    const accepts = acceptingSdk();
    let verify = () => {};
    const verified = new Promise<void>((resolve) => {
      verify = resolve;
    });
    const [fast, slow] = [sessionToken(), sessionToken()];
    const sdk = vi.fn<NextMiddleware>(async (request, event) => {
      const token = request.headers.get('authorization')?.replace('Bearer ', '');
      if (token !== undefined) await (token === fast ? verified : new Promise(() => {}));
      return accepts(request, event);
    });
    const { pass } = setUp({ sdk });
    const passed = [pass(get(bearer(fast))), pass(get(bearer(slow)))];
    // The timers of 4 s fire after 5 s. The middleware concludes from the delay that the process was suspended.
    now.mockReturnValue(5_000);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(sdk).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(3_999);
    expect(sdk).toHaveBeenCalledTimes(2);
    verify();
    await vi.advanceTimersByTimeAsync(1);
    now.mockRestore();
    vi.useRealTimers();
    expect((await Promise.all(passed)).map(({ state }) => state)).toEqual([signedIn(fast), signedOut]);
  });

  test('The SDK receives the method of the request', async () => {
    const request = new NextRequest('http://localhost:3000/users/v1/me', { method: 'DELETE' });
    expect((await setUp().pass(request)).seen?.method).toBe('DELETE');
  });
});

describe('The middleware', () => {
  test.each(['/things/webhooks/x', '/things/cron/x', '/things/health/x', '/webhooksx/a'])(
    'The middleware verifies the session of a request whose path only resembles a webhook, cron or health path: %s',
    async (path) => {
      const token = sessionToken();
      expect((await setUp().pass(get(bearer(token), path))).state).toEqual(signedIn(token));
      const { route } = await setUp().pass(get(bearer('of the scheduler'), path));
      expect(route.get('authorization')).toBeNull();
    },
  );

  test.each(['/x/__clerk', '/x/__clerk/v1/client', '/__clerkx'])(
    'The middleware does not treat %s as a path of the proxied Frontend API of Clerk',
    async (path) => {
      const request = get({ authorization: 'Bearer ak_0123' }, path);
      expect((await setUp({ isProxy: true }).pass(request)).seen).not.toBe(request);
    },
  );

  test('The middleware removes the header that makes Next.js skip the route', async () => {
    const { route } = await setUp().pass(get({ 'x-middleware-prefetch': '1', accept: 'a' }));
    expect([route.get('x-middleware-prefetch'), route.get('accept')]).toEqual([null, 'a']);
  });

  test.each(['/users/v1/me', '/account'])(
    'The middleware responds with 404 to a request to %s with the x-nextjs-data header',
    async (path) => {
      const { status, headers } = await setUp().pass(get({ 'x-nextjs-data': '1' }, path));
      expect([status, headers.get('content-type')]).toEqual([404, 'application/json']);
    },
  );

  test('An API response has a Content-Security-Policy that forbids everything. The response for an unknown path has no policy from the middleware', async () => {
    expect((await setUp().pass(get())).headers.get('content-security-policy')).toBe(
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect((await setUp().pass(get({}, '/unknown'))).headers.has('content-security-policy')).toBe(false);
  });

  test('If the SDK rewrites a page request to the same address, Next.js renders the page without a rewrite. If the SDK redirects the request, Next.js does not render the page', async () => {
    const sdk = vi.fn<NextMiddleware>(({ url }) => NextResponse.rewrite(url));
    const { headers } = await setUp({ sdk }).pass(get({}, '/account'));
    expect([headers.get('x-middleware-rewrite'), headers.get('x-middleware-next')]).toEqual([null, '1']);
    const redirecting = vi.fn<NextMiddleware>(() => NextResponse.redirect('https://clerk.example/'));
    expect(
      (await setUp({ sdk: redirecting }).pass(get({}, '/account'))).headers.has('x-middleware-next'),
    ).toBe(false);
  });

  test('The middleware lets a page request continue if the SDK returns no response', async () => {
    const { status, headers } = await setUp({ sdk: vi.fn<NextMiddleware>(() => undefined) }).pass(
      get({}, '/account'),
    );
    expect([status, headers.get('x-middleware-next')]).toEqual([200, '1']);
  });

  test('The middleware does not read the body of an API request', async () => {
    const pull = vi.fn();
    const request = new NextRequest('http://localhost:3000/users/v1/me', {
      method: 'POST',
      body: new ReadableStream({ pull }, { highWaterMark: 0 }),
      duplex: 'half',
    });
    expect((await setUp().pass(request)).status).toBe(200);
    expect(pull).not.toHaveBeenCalled();
  });
});

const action = (body: string, cookie = '', path = '/account') =>
  new NextRequest(`http://localhost:3000${path}`, {
    method: 'POST',
    headers: {
      host: 'localhost:3000',
      'content-type': 'multipart/form-data; boundary=x',
      'content-length': String(body.length),
      'sec-fetch-dest': 'document',
      cookie,
    },
    body,
  });
const ACTION_FIELD = `--x\r\nContent-Disposition: form-data; name="$ACTION_ID_${'7f'.repeat(21)}"\r\n\r\n\r\n--x--\r\n`;

describe('Server actions', () => {
  test('A server action neither starts nor completes a handshake, and the SDK receives the method and the session of the action', async () => {
    const cookie = '__session=ey.b.c; __clerk_handshake_nonce=x; __clerk_handshake_nonce_y=x';
    const { seen } = await setUp().pass(
      action(ACTION_FIELD, cookie, '/account?a=b&__clerk_handshake_nonce=x'),
    );
    expect([seen?.method, seen?.url]).toEqual(['POST', 'http://localhost:3000/account?a=b']);
    expect(seen?.headers.get('cookie')).toBe('__session=ey.b.c');
    expect(seen?.headers.get('sec-fetch-dest')).toBe('empty');
  });

  test.each(['/account', '/unknown'])(
    'A server action with an invalid body gets a 400 on %s',
    async (path) => {
      const { pass, sdk } = setUp();
      const { status, headers } = await pass(action('--x--\r\n', '', path));
      expect([status, headers.get('content-type')]).toEqual([400, 'application/json']);
      expect(sdk).not.toHaveBeenCalled();
    },
  );
});

describe('Page requests', () => {
  const page = (path: string, cookie = '') => get({ cookie, 'sec-fetch-dest': 'document' }, path);
  const shaped = (header: object) => `${encoded(header)}.${encoded({})}.x`;
  const GOOD = { alg: 'RS256', typ: 'JWT', kid: 'ins_1' };

  test.each([
    [shaped(GOOD), true],
    [shaped({ alg: 'RS256', kid: 'a' }), true],
    [shaped({ ...GOOD, kid: 'k'.repeat(64) }), true],
    [shaped({ ...GOOD, kid: 'k'.repeat(65) }), false],
    [shaped({ ...GOOD, kid: '' }), false],
    [shaped({ ...GOOD, kid: 'a b' }), false],
    [shaped({ ...GOOD, alg: 'HS256' }), false],
    [shaped({ ...GOOD, typ: 'at+jwt' }), false],
    [`${encoded(GOOD)}.x`, false],
    [`${shaped(GOOD)}.x`, false],
    ['a.b.c', false],
    ['', false],
  ])(
    'The SDK receives a handshake token only if the token is well formed: %s (well formed: %s)',
    async (token, passes) => {
      const inQuery = await setUp().pass(page(`/account?__clerk_handshake=${token}`));
      expect(inQuery.seen?.nextUrl.searchParams.has('__clerk_handshake')).toBe(passes);
      const inCookie = await setUp().pass(page('/account', `__clerk_handshake_x=${token}; a=b`));
      expect(inCookie.seen?.headers.get('cookie')).toBe(passes ? `__clerk_handshake_x=${token}; a=b` : 'a=b');
    },
  );

  test('If one handshake token in the query is malformed, the SDK receives no handshake token in the query', async () => {
    const { seen } = await setUp().pass(
      page(`/account?__clerk_handshake=${handshake}&__clerk_handshake=x&a=b`),
    );
    expect(seen?.url).toBe('http://localhost:3000/account?a=b');
  });

  test('The header x-identity-link-path contains the path and the query of the page, without the parameters of a handshake', async () => {
    const query = `?a=b&__clerk_handshake=${handshake}&__clerk_handshake_nonce=x&__clerk_db_jwt=y&c=%C3%A9`;
    const { seen } = await setUp().pass(page(`/account${query}`));
    expect(seen?.headers.get('x-identity-link-path')).toBe('/account?a=b&c=%C3%A9');
  });

  test.each([
    [2_000, '/account?a='],
    [2_001, '/'],
  ])(
    'The header x-identity-link-path is only a slash if the path and the query have more than 2,000 characters in total: %i characters',
    async (length, start) => {
      const path = '/account?a='.padEnd(length, 'x');
      const { seen } = await setUp().pass(page(path));
      expect(seen?.headers.get('x-identity-link-path')).toBe(start === '/' ? '/' : path);
    },
  );

  test.each([
    ['/account?__clerk_handshake_nonce=x', '__session=ey.b.c'],
    ['/account', '__session=ey.b.c; __clerk_handshake_nonce=x'],
  ])(
    'If the SDK sets no cookies for a handshake nonce, the middleware calls the SDK again without the nonce: %s %s',
    async (path, cookie) => {
      const sdk = vi.fn<NextMiddleware>(() => NextResponse.next());
      await setUp({ sdk }).pass(page(path, cookie));
      expect(sdk).toHaveBeenCalledTimes(2);
      expect(sdk.mock.calls[1]?.[0].headers.get('cookie')).toBe('__session=ey.b.c');
    },
  );

  test('For a page request without a nonce, the SDK is called once and may start a handshake', async () => {
    const { sdk, pass } = setUp();
    const { seen } = await pass(page('/account', '__session=ey.b.c; __refreshing=x; my__refresh=y'));
    expect(sdk).toHaveBeenCalledTimes(1);
    expect(seen?.headers.get('sec-fetch-dest')).toBe('document');
    expect(seen?.headers.get('cookie')).toBe('__session=ey.b.c; my__refresh=y');
  });

  test('If the SDK fails for a page request, the failure is logged, and the SDK is called again without the session and the query', async () => {
    const accepts = acceptingSdk();
    const sdk = vi.fn<NextMiddleware>((request, event) => {
      if (request.cookies.has('__session')) throw new TypeError('out of order');
      return accepts(request, event);
    });
    const { state, seen } = await setUp({ sdk }).pass(page('/account?a=b', '__session=ey.b.c'));
    expect(state).toEqual(signedOut);
    expect(seen?.method).toBe('GET');
    expect(log.warn).toHaveBeenCalledExactlyOnceWith(
      { error: expect.objectContaining({ name: 'TypeError' }) },
      'credential not verified',
    );
    expect(sdk.mock.calls.at(-1)?.[0].url).toBe('http://localhost:3000/account');
  });
});

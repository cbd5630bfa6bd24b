import { NextRequest } from 'next/server';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { environment, InvalidEnvironmentError, parseEnvironment } from '#lib/env';
import { guard } from '#lib/guard';
import { json } from '#lib/http/route';
import { type AuthState, writeAuthState } from '#lib/idp/auth-state';
import { log } from '#lib/log';
import { resolveUserId } from '#lib/user-id';
import { BUILD_TIME_VALUES } from '../harness/build';

vi.mock('#lib/user-id', () => ({ resolveUserId: vi.fn() }));
vi.mock('#lib/env', async (original) => ({
  ...(await original<typeof import('#lib/env')>()),
  environment: vi.fn(),
}));
vi.mock('#lib/log', async (original) => ({
  ...(await original<typeof import('#lib/log')>()),
  log: { info: vi.fn(), error: vi.fn() },
}));

// The guard wraps the handler of a route. The handler runs only for requests with a verified session, and gets the user's ids.
// The middleware verifies the session before the guard runs. It passes the result, which is the auth state, in request headers.
const ENVIRONMENT = parseEnvironment({ ...BUILD_TIME_VALUES });
const SESSION: AuthState = {
  status: 'signed-in',
  token: 'the token',
  signature: 'the signature',
  user: 'user_1',
  reason: undefined,
};
const URL = 'http://localhost:3000/things/v1/42';

/** Returns a request with the headers that the middleware sets for an auth state. */
function request(changes: Partial<AuthState> = {}, method = 'GET') {
  const headers = new Headers();
  writeAuthState(headers, { ...SESSION, ...changes });
  return new NextRequest(URL, { method, headers });
}
const routeContext = { params: Promise.resolve({ thingId: '42' }) };

/** Expects that the guard responds with 401, logs the reason and does not run the handler. */
async function expectUnauthorized(given: NextRequest, reason: string) {
  const handler = vi.fn(() => json({}));
  const response = await guard(handler)(given, routeContext);
  expect(response.status).toBe(401);
  expect(await response.text()).toBe('{"message":"Unauthorized"}');
  expect(log.info).toHaveBeenCalledWith(expect.objectContaining({ reason }), 'request');
  expect(handler).not.toHaveBeenCalled();
  expect(resolveUserId).not.toHaveBeenCalled();
}

beforeEach(() => {
  vi.resetAllMocks();
  vi.mocked(resolveUserId).mockResolvedValue('internal-id');
  vi.mocked(environment).mockReturnValue(ENVIRONMENT);
});

describe('guard()', () => {
  test('The guard passes the request, a readonly context and the dynamic params of the route to the handler', async () => {
    const given = request();
    const handler = vi.fn(async (_request: NextRequest, context: object, { params }: typeof routeContext) =>
      json({ ...context, ...(await params) }),
    );
    const response = await guard(handler)(given, routeContext);
    expect(handler.mock.calls[0]?.[0]).toBe(given);
    expect(await response.json()).toEqual({
      isAuthenticated: true,
      userId: 'internal-id',
      identityProviderUserId: 'user_1',
      thingId: '42',
    });
    expect(Object.isFrozen(handler.mock.calls[0]?.[1])).toBe(true);
  });

  test.each(['user_2', 'user ü/%2F', 'Ада \u{1f600}'])(
    'The guard passes the user id %s to the handler',
    async (user) => {
      const guarded = guard((_request, { identityProviderUserId }) => json({ identityProviderUserId }));
      const response = await guarded(request({ user }), routeContext);
      expect(await response.json()).toEqual({ identityProviderUserId: user });
    },
  );

  test('The guard responds to OPTIONS with 204 and does not run the handler', async () => {
    const handler = vi.fn(() => json({}));
    const response = await guard(handler)(request({}, 'OPTIONS'), routeContext);
    expect(response.status).toBe(204);
    expect(handler).not.toHaveBeenCalled();
  });

  test('The guard responds with 401 to a request without a verified session, and logs the reason', async () => {
    await expectUnauthorized(request({ user: undefined, reason: 'expired' }), 'expired');
  });

  test('The guard responds with 401 if the middleware did not run', async () => {
    await expectUnauthorized(new NextRequest(URL), 'no-auth-state');
  });

  test.each([
    [{ 'x-identity-link-reason': 'expired' }],
    [{ 'x-identity-link-reason': 'a word of a client', 'x-clerk-auth-status': 'signed-out' }],
    [{ 'x-clerk-auth-status': 'signed-out' }],
  ])(
    'If the middleware did not run, the guard ignores the headers %j of a client and logs the reason no-auth-state',
    async (headers) => {
      await expectUnauthorized(new NextRequest(URL, { headers }), 'no-auth-state');
    },
  );

  test.each([
    ['x-identity-link-user', 'user_2'],
    ['x-identity-link-user', '%E0%A4%A'],
    ['x-identity-link-proof', ''],
    ['x-identity-link-proof', Buffer.alloc(32).toString('base64')],
    ['x-clerk-auth-token', 'another token'],
  ])('The guard responds with 401 if the header %s is forged as %j', async (name, value) => {
    const forged = request();
    forged.headers.set(name, value);
    await expectUnauthorized(forged, 'no-auth-state');
  });

  test('The guard responds with 401 if the header x-identity-link-proof was computed with another secret key', async () => {
    vi.mocked(environment).mockReturnValueOnce({ ...ENVIRONMENT, IDP_SECRET_KEY: 'sk_test_other' });
    await expectUnauthorized(request(), 'no-auth-state');
  });

  test('The guard responds with 500 if the environment is invalid, and does not look up the user', async () => {
    const given = request();
    vi.mocked(environment).mockImplementation(() => {
      throw new InvalidEnvironmentError([]);
    });
    expect((await guard(() => json({}))(given, routeContext)).status).toBe(500);
    expect(resolveUserId).not.toHaveBeenCalled();
  });

  test('The guard responds with 500 and hides the error message if the lookup of the user fails', async () => {
    vi.mocked(resolveUserId).mockRejectedValue(new Error('connect ECONNREFUSED 10.0.0.1:5432'));
    const handler = vi.fn(() => json({}));
    const response = await guard(handler)(request(), routeContext);
    expect(response.status).toBe(500);
    expect(await response.text()).toBe('{"message":"Internal Server Error"}');
    expect(handler).not.toHaveBeenCalled();
  });
});

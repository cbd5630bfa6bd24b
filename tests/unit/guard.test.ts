import { auth } from '@clerk/nextjs/server';
import { NextRequest } from 'next/server';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { guard } from '#lib/guard';
import { json } from '#lib/http/route';
import { log } from '#lib/log';
import { resolveUserId } from '#lib/register';

vi.mock('@clerk/nextjs/server', () => ({ auth: vi.fn() }));
vi.mock('#lib/register', () => ({ resolveUserId: vi.fn() }));
vi.mock('#lib/env', () => ({ environment: vi.fn() }));
vi.mock('#lib/log', async (original) => ({
  ...(await original<typeof import('#lib/log')>()),
  log: { info: vi.fn(), error: vi.fn() },
}));

const authState = vi.mocked<() => Promise<unknown>>(auth);
let requests = 0;
/** Returns a string with the form of a session token. */
const tokenOf = (name: string, secondsLeft = 60) =>
  `ey.${Buffer.from(JSON.stringify({ name, exp: Date.now() / 1000 + secondsLeft })).toString('base64url')}.x`;
/** Returns a request as the middleware passes it on. Each call has another session. */
const request = ({ method = 'GET', status = 'signed-in', token = tokenOf(`${++requests}`) } = {}) =>
  new NextRequest('http://localhost:3000/things/v1/42', {
    method,
    headers: { 'x-clerk-auth-status': status, 'x-clerk-auth-token': token, 'x-clerk-auth-signature': 'x' },
  });
/** Returns the auth state of a valid session. */
const session = (userId: unknown = 'user_1', sessionId: unknown = 'sess_1') => ({
  isAuthenticated: true,
  userId,
  sessionId,
});
const segment = { params: Promise.resolve({ thingId: '42' }) };

beforeEach(() => {
  vi.resetAllMocks();
  vi.mocked(resolveUserId).mockResolvedValue('internal-id');
  authState.mockResolvedValue(session());
});

describe('guard', () => {
  test('The guard passes the request, a readonly context and the route params to the handler', async () => {
    const handler = vi.fn(async (_request: NextRequest, context: object, { params }: typeof segment) =>
      json({ ...context, ...(await params) }),
    );
    const response = await guard(handler)(request(), segment);
    expect(await response.json()).toEqual({
      isAuthenticated: true,
      userId: 'internal-id',
      identityProviderUserId: 'user_1',
      thingId: '42',
    });
    expect(Object.isFrozen(handler.mock.calls[0]?.[1])).toBe(true);
  });

  test('The guard responds 204 to OPTIONS without calling the SDK or the handler', async () => {
    const handler = vi.fn(() => json({}));
    const response = await guard(handler)(request({ method: 'OPTIONS' }), segment);
    expect(response.status).toBe(204);
    expect(handler).not.toHaveBeenCalled();
    expect(auth).not.toHaveBeenCalled();
  });

  test.each([
    ['not authenticated', { isAuthenticated: false, userId: null }],
    ['a user id without authentication', { isAuthenticated: false, userId: 'user_1' }],
    ['no user id', session(null)],
    ['an empty user id', session('')],
    ['a user id with NUL', session('a\0b')],
    ['no session id', session('user_1', null)],
    ['an empty session id', session('user_1', '')],
    ['a session id that is not a string', session('user_1', 7)],
  ])('The guard responds 401 and does not run the handler: %s', async (_what, state) => {
    authState.mockResolvedValue(state);
    const handler = vi.fn(() => json({}));
    const response = await guard(handler)(request(), segment);
    expect(response.status).toBe(401);
    expect(await response.text()).toBe('{"message":"Unauthorized"}');
    expect(handler).not.toHaveBeenCalled();
    expect(resolveUserId).not.toHaveBeenCalled();
  });

  test.each(['signed-out', 'handshake', ''])(
    'The guard responds 401 without calling the SDK if the auth state is %j',
    async (status) => {
      const response = await guard(() => json({}))(request({ status }), segment);
      expect(response.status).toBe(401);
      expect(auth).not.toHaveBeenCalled();
    },
  );

  test('The guard responds 401 if the middleware did not run', async () => {
    const bare = new NextRequest('http://localhost:3000/things/v1/42');
    expect((await guard(() => json({}))(bare, segment)).status).toBe(401);
    expect(log.info).toHaveBeenCalledWith(expect.objectContaining({ reason: 'no-auth-state' }), 'request');
  });

  test('The guard calls the SDK once for a session, and again for another, an expired or a rejected one', async () => {
    const guarded = guard((_request, { identityProviderUserId }) => json({ identityProviderUserId }));
    const userOf = async (token: string) => (await guarded(request({ token }), segment)).json();
    const [one, other, refused] = [tokenOf('one'), tokenOf('other', -1), tokenOf('refused')];
    expect(await userOf(one)).toEqual({ identityProviderUserId: 'user_1' });
    authState.mockResolvedValue(session('user_2'));
    expect(await userOf(one)).toEqual({ identityProviderUserId: 'user_1' });
    expect(auth).toHaveBeenCalledTimes(1);
    expect(await userOf(other)).toEqual({ identityProviderUserId: 'user_2' });
    expect(await userOf(other), 'expired').toEqual({ identityProviderUserId: 'user_2' });
    expect(auth).toHaveBeenCalledTimes(3);
    authState.mockResolvedValue(session(''));
    for (let attempt = 0; attempt < 2; attempt += 1)
      expect(await userOf(refused)).toEqual({ message: 'Unauthorized' });
    expect(auth).toHaveBeenCalledTimes(5);
  });

  test('The guard turns an error of the lookup into a 500 without details', async () => {
    vi.mocked(resolveUserId).mockRejectedValue(new Error('connect ECONNREFUSED 10.0.0.1:5432'));
    const handler = vi.fn(() => json({}));
    const response = await guard(handler)(request(), segment);
    expect(response.status).toBe(500);
    expect(await response.text()).toBe('{"message":"Internal Server Error"}');
    expect(handler).not.toHaveBeenCalled();
  });
});

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
/** A session token by its looks, of that name. */
const tokenOf = (name: string, secondsLeft = 60) =>
  `ey.${Buffer.from(JSON.stringify({ name, exp: Date.now() / 1000 + secondsLeft })).toString('base64url')}.x`;
/** A request that the middleware let pass; the session is another one each time. */
const request = ({ method = 'GET', status = 'signed-in', token = tokenOf(`${++requests}`) } = {}) =>
  new NextRequest('http://localhost:3000/things/v1/42', {
    method,
    headers: { 'x-clerk-auth-status': status, 'x-clerk-auth-token': token, 'x-clerk-auth-signature': 'x' },
  });
/** What the SDK makes of a good session. */
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
  test('passes the request, a readonly context and the dynamic params of the route to the handler', async () => {
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

  test('skips OPTIONS: no auth state is asked for, and the handler does not run without a context', async () => {
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
    ['a user id that is none', session('a\0b')],
    ['no session id', session('user_1', null)],
    ['an empty session id', session('user_1', '')],
    ['a session id that is not a string', session('user_1', 7)],
  ])('answers 401 and does not run the handler: %s', async (_what, state) => {
    authState.mockResolvedValue(state);
    const handler = vi.fn(() => json({}));
    const response = await guard(handler)(request(), segment);
    expect(response.status).toBe(401);
    expect(await response.text()).toBe('{"message":"Unauthorized"}');
    expect(handler).not.toHaveBeenCalled();
    expect(resolveUserId).not.toHaveBeenCalled();
  });

  test.each(['signed-out', 'handshake', ''])(
    'answers 401 where the auth state is not that of a session, and does not ask the SDK: %j',
    async (status) => {
      const response = await guard(() => json({}))(request({ status }), segment);
      expect(response.status).toBe(401);
      expect(auth).not.toHaveBeenCalled();
    },
  );

  test('answers 401 where the middleware did not run', async () => {
    const bare = new NextRequest('http://localhost:3000/things/v1/42');
    expect((await guard(() => json({}))(bare, segment)).status).toBe(401);
    expect(log.info).toHaveBeenCalledWith(expect.objectContaining({ reason: 'no-auth-state' }), 'request');
  });

  test('asks the SDK once for a session, and anew for another, an expired or a refused one', async () => {
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

  test('turns a failure of the look-up into the 500 that tells nothing', async () => {
    vi.mocked(resolveUserId).mockRejectedValue(new Error('connect ECONNREFUSED 10.0.0.1:5432'));
    const handler = vi.fn(() => json({}));
    const response = await guard(handler)(request(), segment);
    expect(response.status).toBe(500);
    expect(await response.text()).toBe('{"message":"Internal Server Error"}');
    expect(handler).not.toHaveBeenCalled();
  });
});

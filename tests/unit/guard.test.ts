import { auth } from '@clerk/nextjs/server';
import { NextRequest } from 'next/server';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { guard } from '../../lib/guard';
import { json } from '../../lib/http';
import { resolveUserId } from '../../lib/resolve-user-id';

vi.mock('@clerk/nextjs/server', () => ({ auth: vi.fn() }));
vi.mock('../../lib/resolve-user-id', () => ({ resolveUserId: vi.fn() }));
vi.mock('../../lib/env', () => ({ environment: vi.fn() }));
vi.mock('../../lib/log', async (original) => ({
  ...(await original<typeof import('../../lib/log')>()),
  log: { info: vi.fn(), error: vi.fn() },
}));

const authState = vi.mocked<() => Promise<unknown>>(auth);
const request = (method = 'GET') => new NextRequest('http://localhost:3000/things/v1/42', { method });
const segment = { params: Promise.resolve({ thingId: '42' }) };

beforeEach(() => {
  vi.resetAllMocks();
  vi.mocked(resolveUserId).mockResolvedValue('internal-id');
  authState.mockResolvedValue({ isAuthenticated: true, userId: 'user_1' });
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
    const response = await guard(handler)(request('OPTIONS'), segment);
    expect(response.status).toBe(204);
    expect(handler).not.toHaveBeenCalled();
    expect(auth).not.toHaveBeenCalled();
  });

  test.each([
    ['not authenticated', { isAuthenticated: false, userId: null }],
    ['a user id without authentication', { isAuthenticated: false, userId: 'user_1' }],
    ['no user id', { isAuthenticated: true, userId: null }],
    ['an empty user id', { isAuthenticated: true, userId: '' }],
  ])('answers 401 and does not run the handler: %s', async (_what, state) => {
    authState.mockResolvedValue(state);
    const handler = vi.fn(() => json({}));
    const response = await guard(handler)(request(), segment);
    expect(response.status).toBe(401);
    expect(await response.text()).toBe('{"message":"Unauthorized"}');
    expect(handler).not.toHaveBeenCalled();
    expect(resolveUserId).not.toHaveBeenCalled();
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

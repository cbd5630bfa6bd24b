import { NextRequest } from 'next/server';
import { beforeEach, expect, test, vi } from 'vitest';
import { parseEnvironment, setEnvironment } from '#lib/env';
import { guard } from '#lib/guard';
import { json } from '#lib/http/route';
import { PAGE_PATH, signVerdict, VERDICT } from '#lib/idp/verdict';
import { log } from '#lib/log';
import { resolveUserId } from '#lib/user-id';
import { BUILD_TIME_VALUES } from '../harness/build';

vi.mock('#lib/user-id', () => ({ resolveUserId: vi.fn() }));
for (const level of ['debug', 'info', 'error'] as const) vi.spyOn(log, level).mockReturnValue();

const request = (headers: Record<string, string>, method = 'GET') =>
  new NextRequest('http://localhost:3000/things/v1/42', { method, headers });
const routeContext = { params: Promise.resolve({ thingId: '42' }) };
const handler = vi.fn(async (_request: NextRequest, user: object, { params }: typeof routeContext) =>
  json({ ...user, ...(await params) }),
);
const guarded = guard(handler);

beforeEach(() => {
  vi.clearAllMocks();
  setEnvironment(parseEnvironment({ ...BUILD_TIME_VALUES }));
  vi.mocked(resolveUserId).mockResolvedValue('internal-id');
});

test.each(['user_1', 'user ü/%2F', 'Ада \u{1f600}'])(
  'The guard passes the request, a readonly context and the dynamic params of the route to the handler: %s',
  async (user) => {
    const given = request({ [VERDICT]: signVerdict({ user, issuedAt: 7 }) });
    const response = await guarded(given, routeContext);
    expect(await response.json()).toEqual({
      isAuthenticated: true,
      userId: 'internal-id',
      identityProviderUserId: user,
      thingId: '42',
    });
    expect(handler.mock.calls[0]?.[0]).toBe(given);
    expect(Object.isFrozen(handler.mock.calls[0]?.[1])).toBe(true);
    expect(resolveUserId).toHaveBeenCalledExactlyOnceWith(user, 7);
  },
);

test('The log line of an impersonated session has `impersonated`, and neither the line nor the context has the actor', async () => {
  const verdict = signVerdict({ user: 'user_1', actor: { id: 'user_support', type: 'agent' } });
  const response = await guarded(request({ [VERDICT]: verdict }), routeContext);
  expect(log.info).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ impersonated: true }),
    'request',
  );
  const [fields] = vi.mocked(log.info).mock.calls.flat();
  expect(JSON.stringify(fields) + (await response.text())).not.toMatch(/user_support|agent/);
});

test('The guard responds to OPTIONS with 204 and does not run the handler', async () => {
  const response = await guarded(request({}, 'OPTIONS'), routeContext);
  expect([response.status, handler.mock.calls]).toEqual([204, []]);
});

const otherKey = () => {
  const { IDP_SECRET_KEY: _key, ...rest } = BUILD_TIME_VALUES;
  setEnvironment(parseEnvironment({ ...rest, IDP_SECRET_KEY: 'sk_test_anothersecretkey' }));
  const forged = signVerdict({ user: 'user_1' });
  setEnvironment(parseEnvironment({ ...BUILD_TIME_VALUES }));
  return forged;
};
const payload = Buffer.from('{"user":"user_2"}').toString('base64url');

test.each<[reason: string, what: string, headers: () => Record<string, string>]>([
  ['token-expired', 'a rejected session', () => ({ [VERDICT]: signVerdict({ reason: 'token-expired' }) })],
  ['no-verdict', 'no verdict, because the middleware did not run', () => ({})],
  ['no-verdict', 'an empty verdict', () => ({ [VERDICT]: '' })],
  ['no-verdict', 'a verdict without a signature', () => ({ [VERDICT]: payload })],
  [
    'no-verdict',
    'the signature of another verdict',
    () => ({ [VERDICT]: `${payload}.${signVerdict({ user: 'user_1' }).split('.')[1]}` }),
  ],
  ['no-verdict', 'a verdict that was signed with another key', () => ({ [VERDICT]: otherKey() })],
])(
  'The guard responds with 401, logs the reason %s and looks up no user: %s',
  async (reason, _what, headers) => {
    const response = await guarded(request(headers()), routeContext);
    expect([response.status, await response.text()]).toEqual([401, '{"message":"Unauthorized"}']);
    expect(log.info).toHaveBeenCalledWith(expect.objectContaining({ reason }), 'request');
    expect([handler.mock.calls, vi.mocked(resolveUserId).mock.calls]).toEqual([[], []]);
  },
);

test('The guard responds with 401 to a forgotten user', async () => {
  vi.mocked(resolveUserId).mockResolvedValue(undefined);
  const response = await guarded(request({ [VERDICT]: signVerdict({ user: 'user_1' }) }), routeContext);
  expect([response.status, handler.mock.calls]).toEqual([401, []]);
  expect(log.info).toHaveBeenCalledWith(expect.objectContaining({ reason: 'forgotten' }), 'request');
});

test('The guard responds with 500 on a path that the middleware treats as a page', async () => {
  const headers = { [PAGE_PATH]: '/notes', [VERDICT]: signVerdict({ user: 'user_1' }) };
  expect((await guarded(request(headers), routeContext)).status).toBe(500);
  expect(vi.mocked(resolveUserId).mock.calls).toEqual([]);
});

test('The guard responds with 500 and hides the error message if the lookup of the user fails', async () => {
  vi.mocked(resolveUserId).mockRejectedValue(new Error('connect ECONNREFUSED 10.0.0.1:5432'));
  const response = await guarded(request({ [VERDICT]: signVerdict({ user: 'user_1' }) }), routeContext);
  expect([response.status, await response.text()]).toEqual([500, '{"message":"Internal Server Error"}']);
  expect(handler).not.toHaveBeenCalled();
});

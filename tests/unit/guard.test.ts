import { NextRequest } from 'next/server';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { setEnvironment } from '#lib/base/env';
import { log } from '#lib/base/log';
import type { Resolve } from '#lib/core/resolve';
import type { Verdict } from '#lib/core/verdict';
import { guard } from '#lib/guard';
import { guardTenant } from '#lib/guard-tenant';
import { json, type RouteHandler } from '#lib/http/route';
import { PAGE_PATH, readVerdict, signVerdict, VERDICT } from '#lib/http/signed-verdict';
import { BUILD_TIME_VALUES } from '../harness/build';

vi.mock('#lib/ids/cache', () => ({ readCachedId: vi.fn() }));
const resolveId = vi.hoisted(() => vi.fn<Resolve>());
vi.mock('#lib/core/resolve', () => ({ createResolve: () => resolveId }));
for (const level of ['debug', 'info', 'error'] as const) vi.spyOn(log, level).mockReturnValue();

const routeContext = { params: Promise.resolve({ thingId: '42' }) };
const handler = vi.fn(async (_request: NextRequest, caller: object, { params }: typeof routeContext) =>
  json({ ...caller, ...(await params) }),
);
const user = { isAuthenticated: true, userId: 'id of the user', identityProviderUserId: 'user_1' };
const tenant = {
  tenantId: 'id of the tenant',
  identityProviderOrganizationId: 'org_1',
  organizationRole: 'org:member',
};
const member: Verdict = {
  user: 'user_1',
  issuedAt: 7,
  organization: { id: 'org_1', role: 'org:member' },
};
const signed = (verdict: Verdict) => ({ [VERDICT]: signVerdict(verdict) });

async function send(
  route: RouteHandler<typeof routeContext>,
  headers: Record<string, string>,
  method = 'GET',
) {
  const request = new NextRequest('http://localhost:3000/things/v1/42', { method, headers });
  const response = await route(request, routeContext);
  const body = response.body && (await response.json());
  return { request, status: response.status, body, retryAfter: response.headers.get('retry-after') };
}
const logged = (fields: object) =>
  expect(log.info).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(fields), 'request');

beforeEach(() => {
  vi.clearAllMocks();
  setEnvironment({ ...BUILD_TIME_VALUES });
  vi.mocked(resolveId).mockImplementation(async (kind) => ({
    state: 'linked',
    id: `id of the ${kind}`,
    cache: 'hit',
  }));
});

/** Returns a verdict with the signature of a service with these variables. */
const signedWith = (variables: Record<string, string>) => () => {
  setEnvironment({ ...BUILD_TIME_VALUES, ...variables });
  const forged = signed(member);
  setEnvironment({ ...BUILD_TIME_VALUES });
  return forged;
};
const payload = Buffer.from('{"user":"user_2"}').toString('base64url');
const UNAUTHORIZED = { status: 401, body: { message: 'Unauthorized' } };

describe.each([
  ['guard', guard(handler), user],
  ['guardTenant', guardTenant(handler), { ...user, ...tenant }],
])('A route of %s', (_name, guarded, context) => {
  test('gets the request, a readonly context and the dynamic params', async () => {
    const { request, body } = await send(guarded, signed(member));
    expect(body).toEqual({ ...context, thingId: '42' });
    expect(handler.mock.calls[0]?.[0]).toBe(request);
    expect(Object.isFrozen(handler.mock.calls[0]?.[1])).toBe(true);
    expect(vi.mocked(resolveId).mock.calls[0]?.slice(0, 3)).toEqual(['user', 'user_1', 7]);
  });

  test('responds to OPTIONS with 204 and does not run the handler', async () => {
    expect(await send(guarded, {}, 'OPTIONS')).toMatchObject({ status: 204, body: null });
    expect(handler).not.toHaveBeenCalled();
  });

  test.each<[reason: string, what: string, headers: () => Record<string, string>]>([
    ['token-expired', 'a rejected session', () => signed({ reason: 'token-expired' })],
    ['no-verdict', 'no verdict, because the middleware did not run', () => ({})],
    ['no-verdict', 'an empty verdict', () => ({ [VERDICT]: '' })],
    ['no-verdict', 'a verdict without a signature', () => ({ [VERDICT]: payload })],
    [
      'no-verdict',
      'the signature of another verdict',
      () => ({ [VERDICT]: `${payload}.${signVerdict(member).split('.')[1]}` }),
    ],
    [
      'no-verdict',
      'a verdict that was signed with another secret key',
      signedWith({ IDP_SECRET_KEY: 'sk_test_anothersecretkey' }),
    ],
    [
      'no-verdict',
      'a verdict that was signed with a key of its own',
      signedWith({ VERDICT_SIGNING_KEY: 'x'.repeat(32) }),
    ],
  ])('responds with 401, logs the reason %s and looks up no id: %s', async (reason, _what, headers) => {
    expect(await send(guarded, headers())).toMatchObject(UNAUTHORIZED);
    logged({ reason });
    expect([handler.mock.calls, vi.mocked(resolveId).mock.calls]).toEqual([[], []]);
  });

  test('responds with 503 if the session could not be checked', async () => {
    const unchecked = signed({ reason: 'not-verified', isUnchecked: true });
    expect(await send(guarded, unchecked)).toMatchObject({
      status: 503,
      body: { message: 'Service Unavailable' },
      retryAfter: '1',
    });
    logged({ reason: 'not-verified' });
    expect([handler.mock.calls, vi.mocked(resolveId).mock.calls]).toEqual([[], []]);
  });

  test('responds with 401 to a forgotten user', async () => {
    vi.mocked(resolveId).mockResolvedValue({ state: 'forgotten' });
    expect(await send(guarded, signed(member))).toMatchObject(UNAUTHORIZED);
    logged({ reason: 'forgotten' });
    expect([handler.mock.calls.length, vi.mocked(resolveId).mock.calls.length]).toEqual([0, 1]);
  });

  test('responds with 500 on a path that the middleware treats as a page, and logs the remedy', async () => {
    expect((await send(guarded, { [PAGE_PATH]: '/notes', ...signed(member) })).status).toBe(500);
    expect(vi.mocked(log.error).mock.lastCall).toMatchObject([
      { error: { message: 'The middleware treated a route as a page' } },
      'request',
    ]);
    expect(resolveId).not.toHaveBeenCalled();
  });

  test('responds with 500 and hides the error message if the last lookup fails', async () => {
    const lookUp = async (kind: 'user' | 'tenant') => ({
      state: 'linked' as const,
      id: `id of the ${kind}`,
      cache: 'hit' as const,
    });
    vi.mocked(resolveId).mockImplementation((kind) =>
      kind === 'user' && 'tenantId' in context ? lookUp(kind) : Promise.reject(new Error('ECONNREFUSED')),
    );
    expect(await send(guarded, signed(member))).toMatchObject({
      status: 500,
      body: { message: 'Internal Server Error' },
    });
    expect(handler).not.toHaveBeenCalled();
  });
});

test('The log line of an impersonated session has `impersonated`, and neither the line nor the context has the actor', async () => {
  const actor = { id: 'user_support', type: 'agent' };
  const { body } = await send(guard(handler), signed({ user: 'user_1', actor }));
  logged({ impersonated: true });
  expect(JSON.stringify([vi.mocked(log.info).mock.calls, body])).not.toMatch(/user_support|agent/);
});

test.each([{ user: 'user_1' }, { reason: 'expired' }])(
  'The log line has the name of another provider that decided: %o',
  async (verdict) => {
    await send(guard(handler), signed({ ...verdict, provider: 'other' }));
    logged({ provider: 'other' });
  },
);

test.each(['user ü/%2F', 'Ада \u{1f600}'])(
  'The id of a user reaches the handler unchanged: %s',
  async (id) => {
    const { body } = await send(guard(handler), signed({ user: id }));
    expect(body).toMatchObject({ identityProviderUserId: id });
  },
);

const onlyAdmins = guardTenant(handler, { role: 'org:admin' });
const inRole = (role: string): Verdict => ({ ...member, organization: { id: 'org_1', role } });

test.each<[string, Verdict, string]>([
  ['no active organization', { user: 'user_1' }, 'no-organization'],
  ['another role', member, 'organization-role'],
  ['a role in another case', inRole('org:Admin'), 'organization-role'],
  ['a role that begins the name of the right one', inRole('org:adm'), 'organization-role'],
  ['a role that the right one begins', inRole('org:administrator'), 'organization-role'],
])(
  'A session with %s gets a 403, and neither the user nor the tenant is looked up',
  async (_what, verdict, reason) => {
    expect(await send(onlyAdmins, signed(verdict))).toMatchObject({
      status: 403,
      body: { message: 'Forbidden' },
    });
    logged({ status: 403, reason });
    expect([handler.mock.calls, vi.mocked(resolveId).mock.calls]).toEqual([[], []]);
  },
);

test('A session with the required role passes', async () => {
  const { status, body } = await send(onlyAdmins, signed(inRole('org:admin')));
  expect([status, body]).toMatchObject([200, { organizationRole: 'org:admin' }]);
});

test('Without a key, no verdict is signed or read', () => {
  setEnvironment({ ...BUILD_TIME_VALUES, IDP_SECRET_KEY: '' });
  expect(() => signed(member)).toThrow('VERDICT_SIGNING_KEY is missing');
  expect(() => readVerdict(new Headers())).toThrow('VERDICT_SIGNING_KEY is missing');
});

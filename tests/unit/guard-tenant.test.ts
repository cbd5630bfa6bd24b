import { NextRequest } from 'next/server';
import { beforeEach, expect, test, vi } from 'vitest';
import { parseEnvironment, setEnvironment } from '#lib/env';
import { guard } from '#lib/guard';
import { guardTenant } from '#lib/guard-tenant';
import { json } from '#lib/http/route';
import { signVerdict, VERDICT } from '#lib/idp/verdict';
import { log } from '#lib/log';
import { resolveTenantId } from '#lib/tenant-id';
import { resolveUserId } from '#lib/user-id';
import { BUILD_TIME_VALUES } from '../harness/build';

vi.mock('#lib/user-id', () => ({ resolveUserId: vi.fn() }));
vi.mock('#lib/tenant-id', () => ({ resolveTenantId: vi.fn() }));
for (const level of ['info', 'error'] as const) vi.spyOn(log, level).mockReturnValue();

type Verdict = Parameters<typeof signVerdict>[0];
const member: Verdict = { user: 'user_1', organization: { id: 'org_1', role: 'org:member' } };
const unauthorized = [401, { message: 'Unauthorized' }];
const forbidden = [403, { message: 'Forbidden' }];

const handler = vi.fn(async (_request: NextRequest, caller: object) => json(caller));
const everyRole = guardTenant(handler);
const onlyAdmins = guardTenant(handler, { role: 'org:admin' });

async function send(route: typeof everyRole, verdict: Verdict | undefined, method = 'GET') {
  const headers = { [VERDICT]: verdict ? signVerdict(verdict) : '' };
  const request = new NextRequest('http://localhost:3000/things/v1/42', { method, headers });
  const response = await route(request, { params: Promise.resolve({}) });
  return [response.status, response.body && (await response.json())];
}
const lookups = () => [vi.mocked(resolveUserId).mock.calls, vi.mocked(resolveTenantId).mock.calls];

beforeEach(() => {
  vi.clearAllMocks();
  setEnvironment(parseEnvironment({ ...BUILD_TIME_VALUES }));
  vi.mocked(resolveUserId).mockResolvedValue('internal-id');
  vi.mocked(resolveTenantId).mockResolvedValue('tenant-id');
});

test('The guard of a tenant passes a readonly context with the ids and the role of both user and tenant to the handler', async () => {
  const context = {
    isAuthenticated: true,
    userId: 'internal-id',
    identityProviderUserId: 'user_1',
    tenantId: 'tenant-id',
    identityProviderOrganizationId: 'org_1',
    organizationRole: 'org:member',
  };
  expect(await send(everyRole, member)).toEqual([200, context]);
  expect(Object.isFrozen(handler.mock.calls[0]?.[1])).toBe(true);
  expect(await send(guard(handler), member)).toEqual([
    200,
    { isAuthenticated: true, userId: 'internal-id', identityProviderUserId: 'user_1' },
  ]);
});

test.each<[string, Verdict, string]>([
  ['no active organization', { user: 'user_1' }, 'no-organization'],
  ['another role', member, 'organization-role'],
  [
    'a role in another case',
    { user: 'user_1', organization: { id: 'org_1', role: 'org:Admin' } },
    'organization-role',
  ],
])(
  'A session with %s gets a 403, and neither the user nor the tenant is looked up',
  async (_what, verdict, reason) => {
    expect(await send(onlyAdmins, verdict)).toEqual(forbidden);
    expect([handler.mock.calls, ...lookups()]).toEqual([[], [], []]);
    expect(log.info).toHaveBeenCalledWith(expect.objectContaining({ status: 403, reason }), 'request');
  },
);

test('A session with the required role passes', async () => {
  const admin = { user: 'user_1', organization: { id: 'org_1', role: 'org:admin' } };
  expect(await send(onlyAdmins, admin)).toMatchObject([200, { organizationRole: 'org:admin' }]);
});

test('Without a session, the guard of a tenant responds like the guard', async () => {
  expect(await send(onlyAdmins, undefined)).toEqual(unauthorized);
  expect(await send(onlyAdmins, { reason: 'token-expired' })).toEqual(unauthorized);
  expect(log.info).toHaveBeenCalledWith(expect.objectContaining({ reason: 'token-expired' }), 'request');
  expect(await send(onlyAdmins, undefined, 'OPTIONS')).toEqual([204, null]);
  expect([handler.mock.calls, ...lookups()]).toEqual([[], [], []]);
});

test('A forgotten user gets a 401', async () => {
  vi.mocked(resolveUserId).mockResolvedValue(undefined);
  expect(await send(everyRole, member)).toEqual(unauthorized);
  expect(log.info).toHaveBeenCalledWith(expect.objectContaining({ reason: 'forgotten' }), 'request');
  expect(handler).not.toHaveBeenCalled();
});

test.each([
  ['user', resolveUserId],
  ['tenant', resolveTenantId],
])('The guard of a tenant responds with 500 if the lookup of the %s fails', async (_what, lookup) => {
  vi.mocked(lookup).mockRejectedValue(new Error('connect ECONNREFUSED 10.0.0.1:5432'));
  expect(await send(everyRole, member)).toEqual([500, { message: 'Internal Server Error' }]);
  expect(handler).not.toHaveBeenCalled();
});

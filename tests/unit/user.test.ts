import { beforeEach, expect, test, vi } from 'vitest';
import { setEnvironment } from '#lib/base/env';
import { log } from '#lib/base/log';
import { withLogFields } from '#lib/http/request-log';
import { PAGE_PATH, signVerdict, VERDICT } from '#lib/http/signed-verdict';
import { mainProvider } from '#lib/main-provider';
import { getActor, getTenant, getUser, requireUser } from '#lib/user';
import { BUILD_TIME_VALUES } from '../harness/build';

const request = vi.hoisted(() => ({ headers: new Headers() }));
vi.mock('next/headers', () => ({ headers: async () => request.headers }));
vi.mock('#lib/ids/cache', () => ({ readCachedId: vi.fn() }));
vi.mock('#lib/core/resolve', () => ({
  createResolve: () => async (kind: string, id: string, issuedAt?: number) => {
    if (kind === 'user' ? issuedAt !== 7 : id === 'org_forgotten') return { state: 'forgotten' };
    return { state: 'linked', id: kind === 'user' ? 'internal-id' : `tenant of ${id}`, cache: 'hit' };
  },
}));

const info = vi.spyOn(log, 'info').mockReturnValue();
const CONTEXT = { isAuthenticated: true, userId: 'internal-id', identityProviderUserId: 'user_1' };
const page = { [PAGE_PATH]: '/projects?page=2&a=b', 'x-request-id': 'req-1' };
const visit = (verdict: Parameters<typeof signVerdict>[0], headers: Record<string, string> = page) => {
  request.headers = new Headers({ ...headers, [VERDICT]: signVerdict(verdict) });
};

beforeEach(() => {
  setEnvironment({ ...BUILD_TIME_VALUES });
  info.mockClear();
});

test('requireUser() in a page with a session returns the context of the user and logs one line', async () => {
  visit({ user: 'user_1', issuedAt: 7 });
  expect(await requireUser()).toEqual(CONTEXT);
  expect(info).toHaveBeenCalledExactlyOnceWith(
    { requestId: 'req-1', ms: expect.any(Number), cache: 'hit' },
    'user',
  );
});

test('In a page without a session, getUser() returns undefined and logs the reason. requireUser() redirects to the sign-in page, also for a forgotten user', async () => {
  visit({ reason: 'signed-out' });
  expect(await getUser()).toBeUndefined();
  expect(info.mock.calls[0]?.[0]).toMatchObject({ reason: 'signed-out' });
  const path = `${mainProvider.paths.signIn}?redirect_url=${encodeURIComponent('/projects?page=2&a=b')}`;
  const digest = expect.stringContaining(`;${path};`);
  await expect(requireUser()).rejects.toEqual(expect.objectContaining({ digest }));
  visit({ user: 'user_forgotten', issuedAt: 1 });
  await expect(requireUser()).rejects.toEqual(expect.objectContaining({ digest }));
});

test('In a route without a session, requireUser() throws a 401', async () => {
  visit({ reason: 'no-credential' }, {});
  await expect(requireUser()).rejects.toMatchObject({ status: 401, message: 'Unauthorized' });
});

test('Within a route, getUser() adds its log fields to those of the route and writes no log line of its own', async () => {
  visit({ reason: 'no-credential' }, {});
  const fields = {};
  await withLogFields(fields, getUser);
  expect([fields, info.mock.calls]).toEqual([{ reason: 'no-credential' }, []]);
});

test('getTenant() returns the context of the active organization, and undefined without an organization, a session or a user, and for a forgotten organization', async () => {
  const organization = { id: 'org_1', role: 'org:member' };
  visit({ user: 'user_1', issuedAt: 7, organization });
  expect(await getTenant()).toEqual({
    ...CONTEXT,
    tenantId: 'tenant of org_1',
    identityProviderOrganizationId: 'org_1',
    organizationRole: 'org:member',
  });
  for (const verdict of [
    { user: 'user_1', issuedAt: 7 },
    { reason: 'signed-out' },
    { user: 'user_forgotten', issuedAt: 1, organization },
    { user: 'user_1', issuedAt: 7, organization: { ...organization, id: 'org_forgotten' } },
  ]) {
    visit(verdict);
    expect(await getTenant()).toBeUndefined();
  }
});

test('getActor() returns the id and the type of the actor, and undefined without an actor or a session', async () => {
  visit({ user: 'user_1', issuedAt: 7, actor: { id: 'agent_1', type: 'agent' } });
  expect(await getActor()).toStrictEqual({ id: 'agent_1', type: 'agent' });
  visit({ user: 'user_1', issuedAt: 7, actor: { id: 'user_support' } });
  expect(await getActor()).toStrictEqual({ id: 'user_support' });
  for (const verdict of [{ user: 'user_1' }, { reason: 'signed-out' }]) {
    visit(verdict);
    expect(await getActor()).toBeUndefined();
  }
  expect(info).not.toHaveBeenCalled();
});

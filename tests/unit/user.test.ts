import { beforeEach, expect, test, vi } from 'vitest';
import { parseEnvironment, setEnvironment } from '#lib/env';
import { writeAuthState } from '#lib/idp/auth-state';
import { addLogFields, log, withLogFields } from '#lib/log';
import { getUser, requireUser } from '#lib/user';
import { BUILD_TIME_VALUES } from '../harness/build';

const request = vi.hoisted(() => ({ headers: new Headers(), session: {} }));
vi.mock('next/headers', () => ({ headers: async () => request.headers }));
vi.mock('#lib/idp/server', () => ({ auth: async () => request.session }));
vi.mock('#lib/user-id', async () => {
  const { addLogFields: add } = await import('#lib/log');
  return {
    resolveUserId: async () => {
      add({ cache: 'hit' });
      return 'internal-id';
    },
  };
});

const info = vi.spyOn(log, 'info').mockReturnValue();
const SIGNED_IN = { isAuthenticated: true, userId: 'user_1', sessionId: 'sess_1' };
const SIGNED_OUT = { isAuthenticated: false, userId: null, sessionId: null };
const CONTEXT = { isAuthenticated: true, userId: 'internal-id', identityProviderUserId: 'user_1' };
/** Sets the session and the headers of the current request. */
const visit = (session: object, headers: Record<string, string> = {}) =>
  Object.assign(request, {
    session,
    headers: new Headers({
      'x-identity-link-path': '/projects?page=2&a=b',
      'x-request-id': 'req-1',
      ...headers,
    }),
  });
const redirectTo = (path: string) =>
  expect.objectContaining({ digest: expect.stringContaining(`;${path};`) });

beforeEach(() => {
  setEnvironment(parseEnvironment({ ...BUILD_TIME_VALUES }));
  info.mockClear();
});

test('requireUser() in a page with a session returns the context of the user and logs one line', async () => {
  visit(SIGNED_IN);
  expect(await requireUser()).toEqual(CONTEXT);
  expect(info).toHaveBeenCalledExactlyOnceWith(
    { requestId: 'req-1', ms: expect.any(Number), cache: 'hit' },
    'user',
  );
});

test('The log line of getUser() in a page contains the duration of the call in whole milliseconds', async () => {
  visit(SIGNED_IN);
  const now = vi.spyOn(performance, 'now').mockReturnValueOnce(1_000.2).mockReturnValueOnce(1_042.4);
  await getUser();
  now.mockRestore();
  expect(info.mock.calls[0]?.[0]).toMatchObject({ ms: 42 });
});

test('In a page without a session, getUser() returns undefined, and requireUser() redirects to the sign-in page', async () => {
  visit(SIGNED_OUT);
  expect(await getUser()).toBeUndefined();
  const back = encodeURIComponent('/projects?page=2&a=b');
  await expect(requireUser()).rejects.toEqual(redirectTo(`/sign-in?redirect_url=${back}`));
});

test.each([
  ['session-token-and-uat-missing', 'no-credential'],
  ['dev-browser-missing', 'no-credential'],
  ['session-token-expired', 'expired'],
  ['a-later-reason', 'not-verified'],
  ['', 'malformed'],
])('getUser() in a page without a session logs the SDK reason %j as %s', async (word, reason) => {
  visit(SIGNED_OUT, { 'x-clerk-auth-reason': word });
  expect(await getUser()).toBeUndefined();
  expect(info.mock.calls[0]?.[0]).toMatchObject({ requestId: 'req-1', reason });
});

test('getUser() in a page returns the verified user even if the SDK also passes a reason for a rejected token', async () => {
  visit(SIGNED_IN, { 'x-clerk-auth-reason': 'session-token-expired' });
  expect(await getUser()).toEqual(CONTEXT);
});

test('In a route, getUser() returns the user that the middleware verified, and requireUser() rejects with a 401 if the middleware verified no user', async () => {
  const headers = new Headers();
  const state = { status: 'signed-in', token: 'a', signature: 'b', user: 'user_1', reason: undefined };
  writeAuthState(headers, state);
  Object.assign(request, { session: SIGNED_OUT, headers });
  expect(await getUser()).toEqual(CONTEXT);
  Object.assign(request, { session: SIGNED_IN, headers: new Headers() });
  await expect(requireUser()).rejects.toMatchObject({ status: 401, message: 'Unauthorized' });
});

test('Within withLogFields(), as in a route, getUser() adds its log fields to the given fields and writes no log line of its own', async () => {
  visit(SIGNED_IN);
  const fields = {};
  await withLogFields(fields, async () => {
    addLogFields({ registered: 'existing' });
    await getUser();
  });
  expect(fields).toEqual({ registered: 'existing', cache: 'hit' });
  expect(info).not.toHaveBeenCalled();
});

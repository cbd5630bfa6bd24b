import { createRequire } from 'node:module';
import { type NextFetchEvent, NextRequest } from 'next/server';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { parseEnvironment } from '#lib/env';
import { guard } from '#lib/guard';
import { json } from '#lib/http/route';
import { auth } from '#lib/idp/server';
import { log } from '#lib/log';
import { generateSigningKeyPem, signingKey } from '../../dev/idp/instance/tokens';
import { BUILD_TIME_VALUES } from '../harness/build';
import { bearer, cookie, now, tokenFor } from '../harness/requests';

vi.hoisted(() => vi.stubEnv('CLERK_SECRET_KEY', 'sk_test_ofthisinstanceandofnobodyelse'));
// The CommonJS module of the SDK, because Node.js cannot load the one for bundlers.
vi.mock('#lib/idp/server', () => ({
  ...createRequire(import.meta.url)('@clerk/nextjs/server'),
  auth: vi.fn(),
}));
vi.mock('#lib/register', () => ({ resolveUserId: async () => 'internal-id' }));

// Gives the middleware its own module instances, as in a build.
vi.resetModules();
const { default: middleware } = await import('../../middleware');

const instance = {
  issuer: 'https://build.clerk.accounts.dev',
  signingKey: signingKey(generateSigningKeyPem()),
};
const asked = vi.mocked<() => Promise<unknown>>(auth);

beforeAll(() => {
  globalThis.parsedEnvironment = parseEnvironment({
    ...BUILD_TIME_VALUES,
    IDP_JWT_KEY: instance.signingKey.publicKeyPem,
  });
  return () => {
    globalThis.parsedEnvironment = undefined;
    vi.unstubAllEnvs();
  };
});

beforeEach(() => {
  for (const level of ['info', 'warn', 'error'] as const) vi.spyOn(log, level).mockReturnValue();
  asked.mockReset().mockRejectedValue(new Error('asked'));
});

const event: NextFetchEvent = Object.create(null);

const token = (sub: string, claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}) =>
  tokenFor(instance, sub, { azp: 'http://localhost:3000', ...claims }, { header });

/** Returns the request headers that the middleware passes to the route. */
async function passed(headers: Record<string, string>): Promise<Headers> {
  const request = new NextRequest('http://localhost:3000/users/v1/me', { headers });
  const answer = await middleware(request, event);
  const prefix = 'x-middleware-request-';
  expect([...(answer?.headers.keys() ?? [])].filter((name) => name.includes('session-user'))).toEqual([]);
  return new Headers(
    [...(answer?.headers ?? [])].flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
    ),
  );
}

const guarded = guard((_request, { identityProviderUserId }) => json({ identityProviderUserId }));

/** Returns the user that the guard identifies, or the status of its response. */
async function seen(headers: Headers) {
  const request = new NextRequest('http://localhost:3000/users/v1/me', { headers });
  const answer = await guarded(request, { params: Promise.resolve({}) });
  return answer.status === 200 ? (await answer.json()).identityProviderUserId : answer.status;
}

const KINDS = [
  ['a bearer', bearer],
  ['a cookie', cookie],
] as const;

test.each(KINDS)(
  'The guard reuses the session that the middleware verified by %s without calling the SDK',
  async (_kind, as) => {
    for (const user of ['user_1', 'user_2', 'Ада %2F\u{1f600}'])
      expect(await seen(await passed(as(token(user))))).toBe(user);
    expect(asked).not.toHaveBeenCalled();
  },
);

test.each(KINDS)(
  'The guard calls the SDK if a header differs from the session that the middleware verified by %s',
  async (_kind, as) => {
    const own = await passed(as(token('user_1')));
    const others = await passed(as(token('user_2')));
    for (const name of ['x-clerk-auth-token', 'x-clerk-auth-signature', 'authorization']) {
      const mixed = new Headers(own);
      mixed.set(name, others.get(name) ?? 'Bearer of somebody else');
      expect(await seen(mixed), name).toBe(500);
    }
    expect(asked).toHaveBeenCalledTimes(3);
  },
);

test('The guard uses the session cookie that the middleware used if there are several', async () => {
  const { cookie: given } = cookie(token('user_1'));
  expect(await seen(await passed({ cookie: `${given}; __session_other=${token('user_2')}` }))).toBe('user_1');
  expect(asked).not.toHaveBeenCalled();
});

test('The cached session expires with its token', async () => {
  const headers = await passed(bearer(token('user_1', { exp: now() + 10 })));
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 9_000 });
  expect(await seen(headers)).toBe('user_1');
  vi.setSystemTime(Date.now() + 2_000);
  expect(await seen(headers)).toBe(500);
  vi.useRealTimers();
});

test.each([
  ['an OAuth token', 'user_oauth', {}, { typ: 'at+jwt' }, 2],
  ['the token of a machine', 'mch_machine', {}, {}, 2],
  ['a pending session', 'user_pending', { sts: 'pending' }, {}, 4],
  ['a user id with NUL', 'a\0b', {}, {}, 4],
  ['an ID token', 'user_1', { sid: undefined, aud: 'client_1' }, {}, 4],
  ['a user id with a lone surrogate', '\ud800', {}, {}, 4],
])('The guard does not cache the result for %s', async (_what, sub, claims, header, times) => {
  asked.mockResolvedValue({ isAuthenticated: false, userId: null });
  const odd = token(sub, claims, header);
  for (const [, as] of [...KINDS, ...KINDS]) expect(await seen(await passed(as(odd)))).toBe(401);
  // For a token of another kind in a cookie, the middleware already finds no session.
  expect(asked).toHaveBeenCalledTimes(times);
});

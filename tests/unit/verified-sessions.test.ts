import { createRequire } from 'node:module';
import { generateSigningKeyPem, signingKey } from 'clerk-emulator';
import { type NextFetchEvent, NextRequest } from 'next/server';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { parseEnvironment } from '#lib/env';
import { guard } from '#lib/guard';
import { json } from '#lib/http/route';
import { auth } from '#lib/idp/server';
import { log } from '#lib/log';
import { BUILD_TIME_VALUES } from '../harness/build';
import { bearer, cookie, now, tokenFor } from '../harness/requests';

vi.hoisted(() => vi.stubEnv('CLERK_SECRET_KEY', 'sk_test_ofthisinstanceandofnobodyelse'));
// The SDK's own middleware; its module for bundlers is none that Node can load.
vi.mock('#lib/idp/server', () => ({
  ...createRequire(import.meta.url)('@clerk/nextjs/server'),
  auth: vi.fn(),
}));
vi.mock('#lib/register', () => ({ resolveUserId: async () => 'internal-id' }));

// As in a build, the middleware has modules of its own.
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

/** What reaches the route of a request that the middleware let pass. */
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

/** Whom the guard takes it for, or the status of its answer. */
async function seen(headers: Headers) {
  const request = new NextRequest('http://localhost:3000/users/v1/me', { headers });
  const answer = await guarded(request, { params: Promise.resolve({}) });
  return answer.status === 200 ? (await answer.json()).identityProviderUserId : answer.status;
}

const KINDS = [
  ['a bearer', bearer],
  ['a cookie', cookie],
] as const;

test.each(KINDS)('whom the middleware found by %s, the guard knows without asking', async (_kind, as) => {
  for (const user of ['user_1', 'user_2', 'Ада %2F\u{1f600}'])
    expect(await seen(await passed(as(token(user))))).toBe(user);
  expect(asked).not.toHaveBeenCalled();
});

test.each(KINDS)(
  'what differs in anything from what the middleware found by %s is asked about',
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

test('of several cookies, it is the one that the middleware went by', async () => {
  const { cookie: given } = cookie(token('user_1'));
  expect(await seen(await passed({ cookie: `${given}; __session_other=${token('user_2')}` }))).toBe('user_1');
  expect(asked).not.toHaveBeenCalled();
});

test('it is not known for longer than the token lives', async () => {
  const headers = await passed(bearer(token('user_1', { exp: now() + 10 })));
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 9_000 });
  expect(await seen(headers)).toBe('user_1');
  vi.setSystemTime(Date.now() + 2_000);
  expect(await seen(headers)).toBe(500);
  vi.useRealTimers();
});

test.each([
  ['an OAuth token', 'user_oauth', {}, { typ: 'at+jwt' }, 2],
  ["a machine's token", 'mch_machine', {}, {}, 2],
  ['a pending session', 'user_pending', { sts: 'pending' }, {}, 4],
  ['a user id that is none', 'a\0b', {}, {}, 4],
  ['an ID token', 'user_1', { sid: undefined, aud: 'client_1' }, {}, 4],
  ['a user id that is not even text', '\ud800', {}, {}, 4],
])('%s is not remembered: it is judged anew each time', async (_what, sub, claims, header, times) => {
  asked.mockResolvedValue({ isAuthenticated: false, userId: null });
  const odd = token(sub, claims, header);
  for (const [, as] of [...KINDS, ...KINDS]) expect(await seen(await passed(as(odd)))).toBe(401);
  // Of a token of another kind in a cookie, the middleware finds no session already.
  expect(asked).toHaveBeenCalledTimes(times);
});

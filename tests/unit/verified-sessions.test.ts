import { createRequire } from 'node:module';
import { type NextFetchEvent, NextRequest } from 'next/server';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { parseEnvironment } from '#lib/env';
import { guard } from '#lib/guard';
import { json } from '#lib/http/route';
import { auth } from '#lib/idp/server';
import { log } from '#lib/log';
import { generateSigningKeyPem, signingKey } from '../../dev/idp/instance/tokens';
import middleware from '../../middleware';
import { BUILD_TIME_VALUES } from '../harness/build';
import { signToken } from '../harness/hostile/tokens';
import { bearer, cookie, now } from '../harness/requests';

vi.hoisted(() => vi.stubEnv('CLERK_SECRET_KEY', 'sk_test_ofthisinstanceandofnobodyelse'));
// The SDK's own middleware; its module for bundlers is none that Node can load.
vi.mock('#lib/idp/server', () => ({
  ...createRequire(import.meta.url)('@clerk/nextjs/server'),
  auth: vi.fn(),
}));
vi.mock('#lib/resolve-user-id', () => ({ resolveUserId: async () => 'internal-id' }));

const instance = { signingKey: signingKey(generateSigningKeyPem()) };
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

/** A token of this instance. */
function token(sub: string, claims: object = {}, header: Record<string, unknown> = {}): string {
  const iat = now();
  const azp = 'http://localhost:3000';
  const session = { sub, sid: 'sess_1', azp, iss: 'https://build.clerk.accounts.dev', sts: 'active', v: 2 };
  return signToken(instance, { ...session, iat, nbf: iat, exp: iat + 60, ...claims }, { header });
}

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

test.each([
  ['an OAuth token', 'user_oauth', {}, { typ: 'at+jwt' }],
  ["a machine's token", 'mch_machine', {}, {}],
  ['a pending session', 'user_pending', { sts: 'pending' }, {}],
  ['a user id that is none', 'a\0b', {}, {}],
  ['a user id that is not even text', '\ud800', {}, {}],
])('%s is not found by the middleware: the guard asks each time', async (_what, sub, claims, header) => {
  asked.mockResolvedValue({ isAuthenticated: false, userId: null });
  const odd = token(sub, claims, header);
  for (const [, as] of [...KINDS, ...KINDS]) expect(await seen(await passed(as(odd)))).toBe(401);
});

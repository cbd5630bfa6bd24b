import { createRequire } from 'node:module';
import { generateSigningKeyPem, signingKey } from 'clerk-emulator';
import { type NextFetchEvent, NextRequest } from 'next/server';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { parseEnvironment, setEnvironment } from '#lib/env';
import { guard } from '#lib/guard';
import { json } from '#lib/http/route';
import { sessionUserOf } from '#lib/idp/session-user';
import { log } from '#lib/log';
import { BUILD_TIME_VALUES } from '../harness/build';
import { bearer, cookie, tokenFor } from '../harness/requests';

const instance = {
  issuer: 'https://build.clerk.accounts.dev',
  signingKey: signingKey(generateSigningKeyPem()),
};
vi.hoisted(() => vi.stubEnv('CLERK_SECRET_KEY', 'sk_test_of_this_test'));

const require = createRequire(import.meta.url);
// With `import`, Node.js gets a module of the SDK that only bundlers can load. With `require`, it gets the module for Node.js.
vi.mock('#lib/idp/server', () => require('@clerk/nextjs/server'));
/** Issue times of the session tokens, one for each time that the guard looked up a user. */
const issued = vi.hoisted((): unknown[] => []);
vi.mock('#lib/user-id', () => ({
  resolveUserId: async (_user: string, issuedAt: () => unknown) => {
    issued.push(issuedAt());
    return 'internal-id';
  },
}));
const { default: middleware } = await import('../../middleware');

const event: NextFetchEvent = Object.create(null);
const guarded = guard((_request, { identityProviderUserId }) => json({ identityProviderUserId }));

beforeAll(() => {
  setEnvironment(parseEnvironment({ ...BUILD_TIME_VALUES, IDP_JWT_KEY: instance.signingKey.publicKeyPem }));
  return () => vi.unstubAllEnvs();
});

beforeEach(() => {
  for (const level of ['info', 'warn', 'error'] as const) vi.spyOn(log, level).mockReturnValue();
});

const token = (sub: string, claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}) =>
  tokenFor(instance, sub, { azp: 'http://localhost:3000', ...claims }, { header });

/**
 * Sends a request through the middleware with the real SDK, and then through the guard. Returns the Clerk id of the user if the
 * response is a 200, otherwise the status.
 */
async function userOf(headers: Record<string, string>) {
  const url = 'http://localhost:3000/users/v1/me';
  const passed = await middleware(new NextRequest(url, { headers }), event);
  const prefix = 'x-middleware-request-';
  const routeHeaders = [...(passed?.headers ?? [])].flatMap(([name, value]): [string, string][] =>
    name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
  );
  const response = await guarded(new NextRequest(url, { headers: routeHeaders }), {
    params: Promise.resolve({}),
  });
  return response.status === 200 ? (await response.json()).identityProviderUserId : response.status;
}

const KINDS = [
  ['bearer token', bearer],
  ['cookie', cookie],
] as const;

test.each(KINDS)(
  'The guard gets the user of a session from the middleware if the session token is sent as a %s',
  async (_kind, as) => {
    for (const user of ['user_1', 'user_2', 'Ада %2F\u{1f600}']) {
      const session = token(user);
      for (let request = 0; request < 2; request += 1) expect(await userOf(as(session))).toBe(user);
    }
  },
);

test.each(KINDS)(
  'The guard gets the issue time of a session token that is sent as a %s',
  async (_kind, as) => {
    issued.length = 0;
    const iat = Math.floor(Date.now() / 1000) - 30;
    const session = token('user_1', { iat });
    for (let request = 0; request < 2; request += 1) await userOf(as(session));
    expect(issued).toEqual([iat, iat]);
  },
);

test('If a request has a session cookie without a suffix and one with the suffix of another instance, the cookie without a suffix determines the user', async () => {
  const { cookie: given } = cookie(token('user_1'));
  expect(await userOf({ cookie: `${given}; __session_other=${token('user_2')}` })).toBe('user_1');
});

test.each([
  ['An OAuth token', 'malformed', 'user_oauth', {}, { typ: 'at+jwt' }],
  ['A machine token', 'malformed', 'mch_machine', {}, {}],
  ['The token of a pending session', 'pending-session', 'user_pending', { sts: 'pending' }, {}],
  ['A token with an invalid user id', 'no-user-id', 'a\0b', {}, {}],
  ['An OIDC ID token', 'malformed', 'user_1', { sid: undefined, aud: 'client_1' }, {}],
  ['A token with a user id that is not valid Unicode', 'no-user-id', '\ud800', {}, {}],
])(
  '%s gets a 401 each time it is sent, and the log contains the reason %s',
  async (_what, reason, sub, claims, header) => {
    const odd = token(sub, claims, header);
    for (const [, as] of [...KINDS, ...KINDS]) {
      expect(await userOf(as(odd))).toBe(401);
      expect(log.info).toHaveBeenLastCalledWith(expect.objectContaining({ reason }), 'request');
    }
  },
);

test('A client cannot select the user with request headers', async () => {
  const forged = {
    'x-identity-link-user': 'user_2',
    'x-identity-link-proof': 'x',
    'x-clerk-auth-status': 'signed-in',
  };
  expect(await userOf(forged)).toBe(401);
  expect(await userOf({ ...forged, ...bearer(token('user_1')) })).toBe('user_1');
});

const session = { isAuthenticated: true, userId: 'user_1', sessionId: 'sess_1' };

test('For a session without claims, sessionUserOf() returns an undefined issue time', () => {
  const verdict = sessionUserOf(session);
  expect(verdict.user === undefined ? verdict : verdict.issuedAt()).toBeUndefined();
});

test.each([
  ['the user for a session', session, { user: 'user_1', issuedAt: expect.any(Function) }],
  // `auth()` returns no reason for `isAuthenticated: false`. For a page request, lib/idp/page-verdict.ts replaces `malformed`
  // with the reason from the SDK's middleware.
  [
    'the reason malformed if the SDK reports isAuthenticated: false and the session is not pending',
    { ...session, isAuthenticated: false },
    { reason: 'malformed' },
  ],
  [
    'the reason pending-session for a pending session',
    { ...session, isAuthenticated: false, sessionStatus: 'pending' },
    { reason: 'pending-session' },
  ],
  [
    'the reason no-user-id for a session without a user id',
    { ...session, userId: null },
    { reason: 'no-user-id' },
  ],
  ['the reason no-user-id for an empty user id', { ...session, userId: '' }, { reason: 'no-user-id' }],
  ['the reason no-user-id for an invalid user id', { ...session, userId: 'a\0b' }, { reason: 'no-user-id' }],
  [
    'the reason malformed for a session without a session id',
    { ...session, sessionId: null },
    { reason: 'malformed' },
  ],
  ['the reason malformed for an empty session id', { ...session, sessionId: '' }, { reason: 'malformed' }],
  [
    'the reason malformed for a session id that is a number',
    { ...session, sessionId: 7 },
    { reason: 'malformed' },
  ],
])('sessionUserOf() returns %s', (_what, given, expected) => {
  expect(sessionUserOf(given)).toEqual({ user: undefined, ...expected });
});

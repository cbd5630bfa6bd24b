import { signingKey } from 'clerk-emulator';
import { type NextFetchEvent, type NextMiddleware, NextRequest, NextResponse } from 'next/server';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { setEnvironment } from '#lib/base/env';
import { log } from '#lib/base/log';
import { authenticator } from '#lib/clerk/api-session';
import { readVerdict, signVerdict, VERDICT } from '#lib/http/signed-verdict';
import { BUILD_TIME_VALUES } from '../harness/build';
import { SIGNING_KEY_PEM } from '../harness/dependencies/signing-key';

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
/** Returns a token without a valid signature. */
const tokenWith = (header: object, claims: object = {}) =>
  `${encode({ alg: 'RS256', kid: 'key', ...header })}.${encode({ exp: NOW, ...claims })}.c2ln`;
const event: NextFetchEvent = Object.create(null);
const NOW = 1_000_000_000;
const TOKEN = tokenWith({});

/** Returns a response of the SDK's middleware, which passes these headers to the route. */
const passing = (headers: Record<string, string>, own = {}) =>
  NextResponse.next({ request: { headers: new Headers(headers) }, headers: own });
const SIGNED_IN = { 'x-clerk-auth-status': 'signed-in', 'x-clerk-auth-token': 'token', 'x-other': 'x' };
const signedIn = (expiresAt?: number) => async () => {
  return passing({ ...SIGNED_IN, [VERDICT]: signVerdict({ user: 'user_1', expiresAt }) });
};

/** Creates an authenticator whose SDK is a stub. */
function authenticatorWith(respond: (request: NextRequest) => Promise<Response | undefined>) {
  const sdk = vi.fn<NextMiddleware>(respond);
  const authenticate = authenticator(sdk);
  const url = 'https://app.example/users/v1/me?a=b';
  const call = async (headers: Record<string, string> = { authorization: TOKEN, 'x-more': '1' }) =>
    new Headers(
      (await authenticate(new NextRequest(url), new Headers(headers), event)).map(([...pair]) => pair),
    );
  return { sdk, call, verdict: async () => readVerdict(await call()) };
}

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now());
  setEnvironment({ ...BUILD_TIME_VALUES });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test('The SDK gets only the credential and the path of a request, and the route gets only the auth state', async () => {
  const { sdk, call } = authenticatorWith(signedIn());
  const state = await call();
  expect([...state.keys()].sort()).toEqual([
    'x-clerk-auth-signature',
    'x-clerk-auth-status',
    'x-clerk-auth-token',
    VERDICT,
  ]);
  const [request] = sdk.mock.calls[0] ?? [];
  expect(request?.url).toBe('https://app.example/users/v1/me');
  expect(Object.fromEntries(request?.headers ?? [])).toEqual({
    authorization: `Bearer ${TOKEN}`,
    'sec-fetch-dest': 'empty',
  });
});

test.each([
  ['until its token expires', NOW / 1_000 + 30, 30_000, 30_001],
  ['for at most 60 s', NOW / 1_000 + 300, 60_000, 60_001],
])('A verified session is cached %s', async (_limit, expiresAt, cached, expired) => {
  const { sdk, call } = authenticatorWith(signedIn(expiresAt));
  const first = await call();
  vi.setSystemTime(NOW + cached);
  expect([...(await call())]).toEqual([...first]);
  expect(sdk).toHaveBeenCalledTimes(1);
  await call({ authorization: `${TOKEN}x` });
  expect(sdk).toHaveBeenCalledTimes(2);
  vi.setSystemTime(NOW + expired);
  await call();
  expect(sdk).toHaveBeenCalledTimes(3);
});

test('A session without an expiry, or that has expired, is not cached', async () => {
  for (const expiresAt of [undefined, NOW / 1_000, NOW / 1_000 - 1]) {
    const { sdk, call } = authenticatorWith(signedIn(expiresAt));
    await call();
    await call();
    expect(sdk).toHaveBeenCalledTimes(2);
  }
});

const { publicKeyPem: IDP_JWT_KEY } = signingKey(SIGNING_KEY_PEM);

/** Number of warnings so far. Each is an hour later than the previous one, because warnings are limited to one a minute. */
let hours = 0;
test.each([
  ['session-token-expired', 'session-token-expired', false],
  ['x'.repeat(101), 'not-verified', false],
  ['text of the client', 'not-verified', false],
  ['', 'not-verified', false],
  ['jwk-kid-mismatch', 'jwk-kid-mismatch', false],
  ['jwk-failed-to-load', 'jwk-failed-to-load', true],
  ['secret-key-invalid', 'secret-key-invalid', true],
  ['unexpected-error', 'unexpected-error', true],
])(
  'A rejection of the SDK with the reason "%s" has the reason %s and is not cached. Without IDP_JWT_KEY, the session is unchecked, with a warning: %s',
  async (given, reason, isUnchecked) => {
    vi.setSystemTime(NOW + 3_600_000 * ++hours);
    const warn = vi.spyOn(log, 'warn').mockReturnValue();
    const rejected = passing({ 'x-clerk-auth-status': 'signed-out' }, { 'x-clerk-auth-reason': given });
    const { sdk, call } = authenticatorWith(async () => rejected);
    const state = await call();
    const verdict = isUnchecked ? { reason, isUnchecked } : { reason };
    expect([state.get('x-clerk-auth-status'), readVerdict(state)]).toEqual(['signed-out', verdict]);
    expect(warn.mock.calls).toEqual(isUnchecked ? [[{ reason }, 'credential not verified']] : []);
    setEnvironment({ ...BUILD_TIME_VALUES, IDP_JWT_KEY });
    expect(readVerdict(await call())).toEqual({ reason });
    expect(sdk).toHaveBeenCalledTimes(2);
  },
);

test.each<[string, string, object]>([
  ['a token that has expired', tokenWith({}, { exp: NOW / 1_000 - 6 }), {}],
  ['the algorithm none', tokenWith({ alg: 'none' }), {}],
  ['the algorithm HS256', tokenWith({ alg: 'HS256' }), {}],
  ['a token without the id of a key', tokenWith({ kid: undefined }), {}],
  ['an access token in a cookie', tokenWith({ typ: 'at+jwt' }), { isUnchecked: true, isAccessToken: true }],
  ['a token that has just expired', tokenWith({}, { exp: NOW / 1_000 - 4 }), { isUnchecked: true }],
])(
  'Without the keys of the provider, only a credential that some key can have signed is unchecked: %s',
  async (_what, token, more) => {
    vi.spyOn(log, 'warn').mockReturnValue();
    const headers = { 'x-clerk-auth-reason': 'jwk-failed-to-load' };
    const { call } = authenticatorWith(async () => passing({ 'x-clerk-auth-status': 'signed-out' }, headers));
    const session = { cookie: `__session=${token}; __client_uat=1`, 'sec-fetch-site': 'same-origin' };
    // As a bearer, an access token is not verified by the SDK's middleware.
    for (const each of 'isAccessToken' in more ? [session] : [{ authorization: token }, session])
      expect(readVerdict(await call(each))).toEqual({ reason: 'jwk-failed-to-load', ...more });
  },
);

test('With IDP_JWT_KEY, a verification has no time limit. Without it, a session is unchecked after 4 s', async () => {
  vi.setSystemTime(NOW + 3_600_000 * ++hours);
  vi.spyOn(log, 'warn').mockReturnValue();
  const slow = () =>
    new Promise<Response>((resolve) => {
      setTimeout(() => resolve(signedIn()()), 60_000);
    });
  for (const [variables, verdict] of [
    [BUILD_TIME_VALUES, { reason: 'not-verified', isUnchecked: true }],
    [{ ...BUILD_TIME_VALUES, IDP_JWT_KEY }, { user: 'user_1' }],
  ] as const) {
    setEnvironment(variables);
    const verifying = authenticatorWith(slow).verdict();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await verifying).toEqual(verdict);
  }
});

test.each<[string, () => Promise<Response | undefined>]>([
  ['rejects', () => Promise.reject(new Error('failed'))],
  ['returns no response', async () => undefined],
])('If the SDK %s, the request has no session, and the log has a warning', async (_what, respond) => {
  vi.setSystemTime(NOW + 3_600_000 * ++hours);
  const warn = vi.spyOn(log, 'warn').mockReturnValue();
  expect(await authenticatorWith(respond).verdict()).toEqual({ reason: 'not-verified' });
  const fields = { error: expect.objectContaining({ name: 'Error' }) };
  expect(warn).toHaveBeenCalledExactlyOnceWith(fields, 'credential not verified');
});

test('Another provider is not asked about cookies if the SDK could not check its own', async () => {
  vi.spyOn(log, 'warn').mockReturnValue();
  const reason = { 'x-clerk-auth-reason': 'jwk-remote-failed-to-load' };
  const askProviders = vi.fn(async () => ({ user: 'grace' }));
  const authenticate = authenticator(async () => NextResponse.next({ headers: reason }), askProviders);
  const verdict = async (cookie: string) => {
    const request = new NextRequest('https://app.example/users/v1/me');
    const state = await authenticate(request, new Headers({ cookie }), event);
    return readVerdict(new Headers(state.map(([...pair]) => pair)));
  };
  expect(await verdict(`__session=${TOKEN}; other=x`)).toMatchObject({ isUnchecked: true });
  expect(askProviders).not.toHaveBeenCalled();
  // No key makes an expired token valid.
  expect(await verdict(`__session=${tokenWith({}, { exp: 1 })}; other=x`)).toEqual({ user: 'grace' });
});

import { foreignKeys, type Signing, signToken } from 'clerk-emulator/testing';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { log } from '#lib/base/log';
import { runMiddleware, startMiddleware } from '../harness/application';
import { startStubServer } from '../harness/dependencies/stub-server';
import { PUBLISHABLE_KEY, SECRET_KEY } from '../harness/keys';
import { cookie, now, tokenFor } from '../harness/requests';
import { stopAfterAll } from '../vitest/stop-after-all';

const PARTY = 'https://app.example.com';
const backendApi = stopAfterAll(await startStubServer());
const idp = await startMiddleware({ CLERK_API_URL: backendApi.url, IDP_AUTHORIZED_PARTIES: PARTY });

const LIVE = {
  IDP_PUBLISHABLE_KEY: PUBLISHABLE_KEY.replace('_test_', '_live_'),
  IDP_SECRET_KEY: SECRET_KEY.replace('_test_', '_live_'),
};
const warn = vi.spyOn(log, 'warn').mockReturnValue();
beforeEach(() => void warn.mockClear());

/** Sets what the provider returns for a nonce. It also publishes its keys. */
function respond(body: unknown, status = 200): void {
  backendApi.handler = async ({ url }, response) => {
    const isNonce = url?.startsWith('/v1/clients/handshake_payload?nonce=n');
    const keys = () => fetch(`${idp.url}/v1/jwks`, { headers: { authorization: `Bearer ${SECRET_KEY}` } });
    const text = isNonce ? JSON.stringify(body) : await (await keys()).text();
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  };
}

const session = (claims = {}, signing?: Signing) =>
  tokenFor(idp, 'user_1', { azp: PARTY, ...claims }, signing);
const expired = session({ exp: now() - 60, iat: now() - 120, nbf: now() - 120 });
const setting = (token: string) => [`__session=${token}; Path=/; HttpOnly`, '__client_uat=1; Path=/'];
const signed = (handshake: unknown, signing?: Signing) => signToken(idp, { handshake }, signing);

/** Visits a page as a browser does to which the provider has returned, with the handshake in the address or in a cookie. */
async function visit(
  place: 'address' | 'cookie',
  name: string,
  value: string,
  { own = expired, origin = 'http://localhost:3000' } = {},
) {
  const { readVerdict } = await import('#lib/http/signed-verdict');
  const isInAddress = place === 'address';
  const passed = await runMiddleware(`${origin}/account?a=b${isInAddress ? `&${name}=${value}` : ''}`, {
    headers: {
      host: 'localhost:3000',
      accept: 'text/html',
      'sec-fetch-dest': 'document',
      cookie: `theme=dark; ${cookie(own).cookie}${isInAddress ? '' : `; ${name}=${value}`}`,
    },
  });
  return { ...passed, verdict: readVerdict(passed.headers) };
}
const NONCE = '__clerk_handshake_nonce';
const TOKEN = '__clerk_handshake';
const foreign = { privateKeyPem: foreignKeys().privateKey, header: { kid: idp.signingKey.kid } };
const unknown = { ...foreign, header: { kid: 'theirs' } };
const INVALID: [string, name: string, () => string][] = [
  ['a token whose parts are not JSON', TOKEN, () => 'eyJh.eyJz.c2ln'],
  ['a token of another key', TOKEN, () => signed(setting(session()), foreign)],
  ['a token of an unknown key', TOKEN, () => signed(['a=b'], unknown)],
  ['an access token', TOKEN, () => signed(['a=b'], { header: { typ: 'at+jwt' } })],
  ['a token of a machine', TOKEN, () => signed(['a=b'], { header: { cat: 'cl_B7d4PD333AAA' } })],
  ['a token without cookies', TOKEN, () => signed([])],
  ['a session token', TOKEN, session],
];

describe.each([
  ['of a development instance', {}],
  ['of a production instance', LIVE],
  ['without IDP_JWT_KEY', { IDP_JWT_KEY: '' }],
])('With keys %s', (_what, variables) => {
  beforeEach(async () => {
    const { setEnvironment } = await import('#lib/base/env');
    setEnvironment({ ...process.env, ...variables });
  });

  test.each<[string, name: string, () => string, body?: unknown, status?: number]>([
    ['an unknown nonce', NONCE, () => 'n', { errors: [] }, 404],
    ['a failure of the provider', NONCE, () => 'n', 'text', 500],
    ['a malformed response', NONCE, () => 'n', 'text'],
    ['no cookies', NONCE, () => 'n', { directives: [] }],
    ['a nonce that is a path', NONCE, () => '..%2Fusers', { directives: ['a=b'] }],
    ...INVALID,
  ])(
    'A page is served without a session and a new handshake, and the SDK prints nothing: %s',
    async (_reason, name, value, body, status) => {
      respond(body, status);
      for (const place of ['address', 'cookie'] as const) {
        const { response, isPassed, verdict } = await visit(place, name, value());
        expect([isPassed, response.headers.get('location'), verdict]).toEqual([
          true,
          null,
          { reason: 'signed-out' },
        ]);
        expect(response.headers.getSetCookie()).toEqual([]);
      }
    },
  );

  test.each<[string, name: string, () => string]>([
    ['a token that is not one', TOKEN, () => 'text%0Aof+a+client'],
    ['a token without a signature', TOKEN, () => signed(['a=b'], { header: { alg: 'none' } })],
    ...INVALID,
  ])(
    'An invalid token leaves the session of the browser, and the SDK prints nothing: %s',
    async (_what, name, value) => {
      respond({});
      for (const place of ['address', 'cookie'] as const) {
        const { response, isPassed, verdict } = await visit(place, name, value(), { own: session() });
        expect([isPassed, verdict]).toMatchObject([true, { user: 'user_1' }]);
        expect(response.headers.getSetCookie()).toEqual([]);
      }
    },
  );

  test.each<[string, name: string, value: (cookies: string[]) => string]>([
    ['a nonce', NONCE, () => 'n'],
    ['a signed token', TOKEN, signed],
  ])(
    'A handshake with %s sets the cookies and signs the user in, or first redirects to the address without it',
    async (_what, name, value) => {
      const cookies = setting(session());
      respond({ directives: cookies });
      const { response, headers, verdict } = await visit('cookie', name, value(cookies));
      expect(verdict).toMatchObject({ user: 'user_1' });
      expect(headers.get('cookie')).toBe(
        `theme=dark; __clerk_db_jwt=x; ${cookies.map((each) => each.split(';')[0]).join('; ')}`,
      );
      expect(response.headers.getSetCookie()).toEqual(cookies);
      const redirect = (await visit('address', name, value(cookies))).response;
      expect([redirect.status, redirect.headers.get('location')]).toEqual([
        307,
        'http://localhost:3000/account?a=b',
      ]);
      expect(redirect.headers.getSetCookie()).toEqual(cookies);
      expect(warn).not.toHaveBeenCalled();
    },
  );

  test.each([
    ['of a party that is not authorized', () => session({ azp: 'https://blog.example.com' })],
    ['that another key has signed', () => session({}, foreign)],
    ['that has expired', () => expired],
  ])(
    'A handshake that sets a session token %s does not sign the user in, and does not start another one',
    async (_what, token) => {
      respond({ directives: setting(token()) });
      const { isPassed, verdict } = await visit('cookie', NONCE, 'n');
      expect([isPassed, verdict]).toEqual([true, { reason: expect.any(String) }]);
    },
  );
});

test('Without IDP_JWT_KEY, the keys are loaded once for many tokens, also of an unknown key', async () => {
  const { setEnvironment } = await import('#lib/base/env');
  setEnvironment({ ...process.env, IDP_JWT_KEY: '' });
  vi.useFakeTimers({ toFake: ['Date'] });
  respond({});
  const load = () => visit('address', TOKEN, signed(['a=b'], unknown));
  await load();
  backendApi.calls.length = 0;
  for (let round = 0; round < 3; round += 1) {
    await load();
    expect((await visit('address', TOKEN, signed(['a=b']))).response.status).toBe(307);
  }
  expect(backendApi.calls).toEqual([]);
  vi.useRealTimers();
});

test.each(['http://127.0.0.1:3000', 'http://[::1]:3000'])(
  'The redirect after a handshake has the origin of the request, so that Next.js makes it relative: %s',
  async (origin) => {
    // Next.js sets this variable for skipProxyUrlNormalize.
    vi.stubEnv('__NEXT_NO_MIDDLEWARE_URL_NORMALIZE', '1');
    const { response } = await visit('address', TOKEN, signed(['a=b']), { origin });
    expect(response.headers.get('location')).toBe(`${origin}/account?a=b`);
  },
);

test('If the provider does not respond to a nonce within 3 s, the page is the error page with status 503, and the log has one warning', async () => {
  backendApi.calls.length = 0;
  backendApi.handler = () => undefined;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  // Warnings are limited to one a minute.
  vi.spyOn(performance, 'now').mockReturnValue(Number.MAX_SAFE_INTEGER);
  for (const calls of [1, 2]) {
    const visiting = visit('address', NONCE, 'n');
    await vi.waitFor(() => expect(backendApi.calls).toHaveLength(calls));
    await vi.advanceTimersByTimeAsync(3_000);
    const { response, verdict } = await visiting;
    expect([response.status, verdict.isUnchecked]).toEqual([503, true]);
  }
  vi.useRealTimers();
  const error = expect.objectContaining({ name: 'TimeoutError' });
  expect(warn).toHaveBeenCalledExactlyOnceWith({ error }, 'session of a page not verified');
});

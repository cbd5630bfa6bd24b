import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { jwtProvider } from '#lib/authentication/jwt-provider';
import { log } from '#lib/base/log';
import { createAskProviders, type Provider } from '#lib/providers';
import { runMiddleware, startMiddleware } from '../harness/application';
import { startStubServer } from '../harness/dependencies/stub-server';
import { bearer, cookie, ME, now, tokenFor } from '../harness/requests';
import { stopAfterAll } from '../vitest/stop-after-all';

// Two providers beside Clerk: an issuer of JWTs, and one with cookies, whose value is the user or what happens to the request.

const list = vi.hoisted(() => ({ providers: Array.of<Provider>() }));
vi.mock('#providers', () => list);

const clerk = await startMiddleware({});
const issuer = stopAfterAll(await startStubServer());
const AUDIENCE = 'https://api.example.com';
const key = await generateKeyPair('ES256');
const jwk = { ...(await exportJWK(key.publicKey)), kid: 'key', alg: 'ES256' };
issuer.handler = (_request, response) =>
  response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/jwks`, keys: [jwk] }));

const authenticate = vi.fn<Provider['authenticate']>(({ headers }) => {
  const [, value] = /other=([^;]+)/.exec(headers.get('cookie') ?? '') ?? [];
  if (value === 'broken') throw new Error('The provider fails');
  if (value === 'late') return new Promise(() => undefined);
  if (value === 'expired') return { reason: 'expired' };
  return value === undefined ? undefined : { user: value.replace('long', 'x'.repeat(300)) };
});
list.providers.push(jwtProvider({ issuer: issuer.url, audience: AUDIENCE, prefix: 'issuer|' }), {
  name: 'cookies',
  authenticate,
});

vi.spyOn(log, 'error').mockReturnValue();
const warn = vi.spyOn(log, 'warn').mockReturnValue();
beforeEach(() => {
  authenticate.mockClear();
});

const jwt = (claims: object = {}) =>
  new SignJWT({ iss: issuer.url, aud: AUDIENCE, sub: 'ada', iat: now(), exp: now() + 600, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: 'key' })
    .sign(key.privateKey);
const ofClerk = (claims: object = {}) => tokenFor(clerk, 'user_ada', { ...claims });
const clerkCookies = (claims: object = {}) => cookie(ofClerk(claims)).cookie;
const EXPIRED = { exp: 1 };

/** Returns the user of a request, or the provider and the reason of a rejection, or that its credential could not be checked. */
async function outcome(path: string, headers: Record<string, string>, init: object = {}) {
  const { readVerdict } = await import('#lib/http/signed-verdict');
  const { headers: passed } = await runMiddleware(`http://localhost:3000${path}`, { headers, ...init });
  const { user, reason, isUnchecked, provider = 'clerk' } = readVerdict(passed);
  return isUnchecked ? `${provider}: unchecked` : `${provider}: ${user ?? `rejected ${reason}`}`;
}

describe('A bearer token decides alone', () => {
  const host = new URL(issuer.url).host;
  test.each<[string, () => Promise<string> | string, string]>([
    ['of the issuer', jwt, `${host}: issuer|ada`],
    ['of the issuer, which is expired', () => jwt({ exp: 1 }), `${host}: rejected jwt-expired`],
    ['of the issuer, for a Clerk user', () => jwt({ sub: 'user_ada' }), `${host}: issuer|user_ada`],
    ['of Clerk', () => ofClerk(), 'clerk: user_ada'],
    [
      'of Clerk, which is expired',
      () => ofClerk(EXPIRED),
      'clerk: rejected session-token-expired-refresh-non-eligible-no-refresh-cookie',
    ],
    ['of no provider', () => jwt({ iss: 'https://x.example' }), 'clerk: rejected token-invalid-algorithm'],
    ['that is not a JWT', () => 'text', 'clerk: rejected malformed'],
  ])('if it is one %s', async (_what, create, expected) => {
    const token = await create();
    const headers = { ...bearer(token), cookie: `${clerkCookies()}; other=grace` };
    expect(await outcome(ME, headers)).toBe(expected);
    // The outcome does not change when a credential is cached, and without the word `Bearer`.
    expect(await outcome(ME, headers)).toBe(expected);
    expect(await outcome(ME, { ...headers, authorization: token })).toBe(expected);
    for (const [request] of authenticate.mock.calls)
      expect(Object.fromEntries(request.headers)).toEqual(bearer(token));
  });

  test('if its issuer does not respond: it is unchecked, and no other provider is asked', async () => {
    const dead = 'http://127.0.0.1:9';
    list.providers.unshift(jwtProvider({ issuer: dead, audience: AUDIENCE, prefix: 'dead|' }));
    const ask = createAskProviders(list.providers);
    const value = `Bearer ${await jwt({ iss: dead })}`;
    expect(await ask?.({ header: 'authorization', value }, new URL(AUDIENCE))).toMatchObject({
      provider: '127.0.0.1:9',
      isUnchecked: true,
    });
    expect(authenticate).not.toHaveBeenCalled();
    expect(warn).toHaveBeenCalledWith(
      expect.objectContaining({ provider: '127.0.0.1:9' }),
      expect.anything(),
    );
    list.providers.shift();
  });
});

describe.each([
  ['API', ME],
  ['page', '/account'],
])('The cookies of a request for a route (%s)', (kind, path) => {
  test.each<[string, () => string, string]>([
    ['of both providers', () => `other=grace; ${clerkCookies()}`, 'clerk: user_ada'],
    ['of Clerk alone', () => clerkCookies(), 'clerk: user_ada'],
    ['of the other provider alone', () => 'other=grace', 'cookies: grace'],
    ['of the other provider, which rejects it', () => 'other=expired', 'cookies: rejected expired'],
    [
      'of the other provider, with an id that is too long',
      () => 'other=long',
      'cookies: rejected no-user-id',
    ],
    ['of none', () => 'theme=dark', `clerk: rejected ${kind === 'API' ? 'no-credential' : 'signed-out'}`],
  ])('decide in the order of the providers: %s', async (_what, cookies, expected) => {
    expect(await outcome(path, { cookie: cookies() })).toBe(expected);
  });

  test('reach the next provider if Clerk rejects its own', async () => {
    const stale = path === ME ? clerkCookies(EXPIRED) : '__session=eyJh.eyJz.c2ln';
    expect(await outcome(path, { cookie: `${stale}; other=grace`, 'sec-fetch-dest': 'empty' })).toBe(
      'cookies: grace',
    );
    const [request] = authenticate.mock.calls.at(-1) ?? [];
    // A provider sees nothing else of the request.
    expect(Object.fromEntries(request?.headers ?? [])).toEqual({ cookie: 'other=grace' });
    expect(request?.url).toBe(`http://localhost:3000${path}`);
  });

  test('are unchecked if the provider fails or takes more than 4 s', async () => {
    const unavailable = async (value: string) => {
      const url = `http://localhost:3000${path}`;
      const { headers, response } = await runMiddleware(url, { headers: { cookie: `other=${value}` } });
      const { readVerdict } = await import('#lib/http/signed-verdict');
      expect(readVerdict(headers)).toMatchObject({ isUnchecked: true, provider: 'cookies' });
      // The guard of a route responds with the status 503.
      expect(response.status).toBe(path === ME ? 200 : 503);
    };
    await unavailable('broken');
    vi.useFakeTimers({ toFake: ['setTimeout'], shouldAdvanceTime: true, advanceTimeDelta: 1_000 });
    await unavailable('late').finally(() => vi.useRealTimers());
  });
});

test('Cookies of another provider count only under the rule for the origin of cookies', async () => {
  const post = (headers: object) =>
    outcome(ME, { cookie: 'other=grace', host: 'localhost:3000', ...headers }, { method: 'POST' });
  expect(await post({ 'sec-fetch-site': 'same-origin' })).toBe('cookies: grace');
  for (const site of ['cross-site', 'same-site'])
    expect(await post({ 'sec-fetch-site': site, origin: 'https://x.example' })).toBe(
      'clerk: rejected no-credential',
    );
  expect(await post({ origin: 'https://x.example' })).toBe('clerk: rejected no-credential');
});

test('Two providers whose users could get the same id are an error', () => {
  const provider = (prefix?: string) => ({
    name: 'any',
    authenticate,
    ...(prefix === undefined ? {} : { prefix }),
  });
  expect(() => createAskProviders([provider('a|'), provider('ab|'), provider('')])).not.toThrow();
  expect(() => createAskProviders([provider('a|'), provider('a|')])).toThrow('overlap');
  expect(() => createAskProviders([provider('a'), provider('ab|')])).toThrow('overlap');
  expect(() => createAskProviders([provider(), provider('')])).toThrow('overlap');
  expect(() => createAskProviders([provider('user_')])).toThrow('overlap');
});

test('A mistake in the list of providers stops the start with a message', async () => {
  const { register } = await import('../../instrumentation');
  const { start } = await import('#lib/start');
  const print = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => {
    throw new Error('The process exits');
  });
  vi.stubEnv('NEXT_RUNTIME', 'nodejs');
  await register();
  list.providers.push({ name: 'without a prefix', authenticate });
  await expect(register()).rejects.toThrow('The process exits');
  list.providers.pop();
  const options = { issuer: issuer.url, audience: '', prefix: '' };
  const starting = start(async () => ({ providers: [jwtProvider(options)] }));
  await expect(starting).rejects.toThrow('The process exits');
  expect(print.mock.calls).toEqual([
    ['Invalid providers/index.ts: The prefixes of two providers overlap: "" and ""\n'],
    ['Invalid providers/index.ts: A provider needs an audience and an algorithm\n'],
  ]);
  expect(exit.mock.calls).toEqual([[1], [1]]);
  exit.mockRestore();
  print.mockRestore();
});

test('A provider names only users with its prefix, and no access token', async () => {
  const accessToken = { user: 'a|ada', clientId: 'client', scopes: [], audiences: [] };
  const verdicts = [{ user: 'user_ada' }, { user: 'a|ada' }, { reason: 'any', accessToken }];
  const ask = createAskProviders([{ name: 'a', prefix: 'a|', authenticate: () => verdicts.shift() }]);
  const results = [];
  while (verdicts.length > 0)
    results.push(await ask?.({ header: 'cookie', value: 'a=b' }, new URL('http://localhost')));
  const rejected = { reason: 'no-user-id', provider: 'a' };
  expect(results).toEqual([rejected, { user: 'a|ada', provider: 'a' }, rejected]);
});

test('A provider does not see the cookies of Clerk', async () => {
  const ofSdk =
    '__session=a; __refresh_b=c; __client=d; __client_uat=1; __clerk_handshake=e; __clerk_db_jwt=f';
  const seen = vi.spyOn(list.providers[1] ?? { authenticate }, 'authenticate');
  await outcome(ME, { cookie: `${ofSdk}; other=grace` });
  expect(seen.mock.lastCall?.[0].headers.get('cookie')).toBe('other=grace');
  seen.mockClear();
  await outcome(ME, { cookie: ofSdk });
  expect(seen).not.toHaveBeenCalled();
});

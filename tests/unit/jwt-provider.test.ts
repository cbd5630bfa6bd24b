import { createHmac } from 'node:crypto';
import { exportJWK, exportSPKI, type GenerateKeyPairResult, generateKeyPair, type JWK, SignJWT } from 'jose';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { jwtProvider } from '#lib/authentication/jwt-provider';
import { startStubServer } from '../harness/dependencies/stub-server';
import { now } from '../harness/requests';
import { stopAfterAll } from '../vitest/stop-after-all';

const AUDIENCE = 'https://api.example.com';
const server = stopAfterAll(await startStubServer());
const issuer = server.url;
const KEYS = 'GET /jwks';

const newKey = async (kid: string, alg = 'ES256') => ({
  kid,
  alg,
  ...(await generateKeyPair(alg, { extractable: true })),
});
type Key = GenerateKeyPairResult & { readonly kid: string; readonly alg: string };
const published = async ({ publicKey, kid, alg }: Key) => ({
  ...(await exportJWK(publicKey)),
  kid,
  alg,
});
const first = await newKey('first');
const second = await newKey('second');
const rsa = await newKey('rsa', 'RS256');
const privateKey = await exportJWK(first.privateKey);

/** The documents of the issuer. */
let discovery: object;
let keys: readonly JWK[];
const document = () => JSON.stringify({ ...discovery, keys });
/** Replaces the response of the issuer. */
let fail: ((response: Parameters<typeof server.handler>[1]) => void) | undefined;
server.handler = (request, response) => {
  if (fail && request.url !== '/elsewhere') return fail(response);
  response.writeHead(200, { 'content-type': 'application/json' }).end(document());
};
beforeEach(async () => {
  discovery = { issuer, jwks_uri: `${issuer}/jwks` };
  keys = [await published(first), await published(rsa)];
  fail = undefined;
  server.calls.length = 0;
});

const options = { issuer, audience: AUDIENCE, prefix: 'other|' };
const claims = () => ({ iss: issuer, aud: AUDIENCE, sub: 'ada', iat: now(), exp: now() + 600 });
const sign = (more: object = {}, key: Key = first, header: object = {}) =>
  new SignJWT({ ...claims(), ...more })
    .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
    .sign(key.privateKey);
const asked = (provider: ReturnType<typeof jwtProvider>, authorization: string) =>
  provider.authenticate(new Request('https://app.example.com/any', { headers: { authorization } }));
const check = async (more: object = {}, overrides: Partial<Parameters<typeof jwtProvider>[0]> = {}) =>
  asked(jwtProvider({ ...options, ...overrides }), `Bearer ${await sign(more)}`);

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
/** Signs a token by hand, because the library does not create such tokens. */
function forge(header: object, signature: (text: string) => string, more: object = {}): string {
  const text = `${encode({ kid: 'rsa', ...header })}.${encode({ ...claims(), ...more })}`;
  return `${text}.${signature(text)}`;
}

/** Sets the clock of the provider forward. */
function pass(milliseconds: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + milliseconds });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

describe('The verdict on a valid token', () => {
  test('has the prefixed subject, the times of the token and its actor', async () => {
    const { iat: issuedAt, exp: expiresAt } = claims();
    expect(await check({ iat: issuedAt, exp: expiresAt, act: { sub: 'support' } })).toEqual({
      user: 'other|ada',
      issuedAt,
      expiresAt,
      actor: { id: 'support' },
    });
    expect(server.calls).toEqual(['GET /.well-known/openid-configuration', KEYS]);
  });

  test.each([
    [
      'names the user of another provider only without a prefix',
      { prefix: '' },
      {},
      'user_2ada',
      'user_2ada',
    ],
    ['names no user of another provider with a prefix', {}, {}, 'user_2ada', 'other|user_2ada'],
    ['needs no discovery with an address of the keys', { jwksUrl: `${issuer}/jwks` }, {}, 'ada', 'other|ada'],
    ['may have several audiences', {}, { aud: ['https://x.example', AUDIENCE] }, 'ada', 'other|ada'],
    [
      'may name a client of the list',
      { clients: ['web'] },
      { client_id: 'web', azp: 'web' },
      'ada',
      'other|ada',
    ],
  ])('%s', async (_title, overrides, more, sub, user) => {
    expect(await check({ ...more, sub }, overrides)).toMatchObject({ user });
  });

  test('needs no word `Bearer`', async () => {
    expect(await asked(jwtProvider(options), await sign())).toHaveProperty('user', 'other|ada');
  });

  test('is undefined, without a request, for each credential that does not name the issuer', async () => {
    const provider = jwtProvider(options);
    const token = await sign();
    for (const authorization of [
      '',
      `Basic ${token}`,
      'Bearer x.y',
      'Bearer x.y.z',
      `Bearer ${token}, Bearer ${token}`,
    ])
      expect(await asked(provider, authorization)).toBeUndefined();
    expect(await asked(provider, `Bearer ${await sign({ iss: `${issuer}/` })}`)).toBeUndefined();
    expect(server.calls).toEqual([]);
  });
});

describe('A token is rejected', () => {
  test.each<[string, object, Partial<Parameters<typeof jwtProvider>[0]>?]>([
    ['for another audience', { aud: 'https://other.example.com' }],
    ['without an audience', { aud: undefined }],
    ['with an empty list of audiences', { aud: [] }],
    ['with an expiry in the past', { exp: 1 }],
    ['without an expiry', { exp: undefined }],
    ['without an issue time', { iat: undefined }],
    ['with an issue time in the future', { iat: now() + 60 }],
    ['with an issue time that is a text', { iat: '1' }],
    ['with a start in the future', { nbf: now() + 60 }],
    ['without a subject', { sub: undefined }],
    ['with an empty subject', { sub: '' }],
    ['with a number as its subject', { sub: 7 }],
    ['with a list as its subject', { sub: ['ada'] }],
    ['with a subject that is too long', { sub: 'x'.repeat(300) }],
    ['with a malformed actor', { act: { sub: 7 } }],
    ['of an OAuth client, without a list of clients', { client_id: 'web' }],
    ['of an OAuth client that is not on the list', { client_id: 'partner' }, { clients: ['web'] }],
    ['whose `azp` is not on the list', { client_id: 'web', azp: 'partner' }, { clients: ['web'] }],
    ['whose client is not a text', { client_id: null }, { clients: ['web'] }],
    ['whose subject is the client on the list', { sub: 'web', client_id: 'web' }, { clients: ['web'] }],
    ['with another algorithm than those on the list', {}, { algorithms: ['RS256'] }],
  ])('%s', async (_title, more, overrides) => {
    expect(await check(more, overrides)).toEqual({ reason: expect.stringMatching(/^[a-z-]+$/) });
  });

  test('without a signature, with one made of the public key, of another key, or for another text', async () => {
    const pem = await exportSPKI(rsa.publicKey);
    const hmac = (secret: string) => (text: string) =>
      createHmac('sha256', secret).update(text).digest('base64url');
    const [head, , signature] = (await sign()).split('.');
    const provider = jwtProvider(options);
    for (const token of [
      forge({ alg: 'none' }, () => ''),
      forge({ alg: 'none' }, () => 'AA'),
      forge({ alg: 'HS256' }, hmac(pem)),
      forge({ alg: 'HS256' }, hmac(JSON.stringify(await published(rsa)))),
      forge({ alg: 'RS256' }, () => 'AA'),
      await sign({}, { ...second, kid: first.kid }),
      `${head}.${encode({ ...claims(), sub: 'eve' })}.${signature}`,
    ])
      expect((await asked(provider, `Bearer ${token}`))?.user).toBeUndefined();
  });

  test('with a type for other purposes, or with an extension that the service does not know', async () => {
    const provider = jwtProvider(options);
    const signed = (header: object) => sign({}, first, header);
    expect(await asked(provider, `Bearer ${await signed({ typ: 'at+jwt' })}`)).toHaveProperty('user');
    expect(await asked(provider, `Bearer ${await signed({ typ: 'logout+jwt' })}`)).toEqual({
      reason: 'token-type',
    });
    const critical = new SignJWT(claims()).setProtectedHeader({
      alg: 'ES256',
      kid: 'first',
      crit: ['x'],
      x: 1,
    });
    const token = await critical.sign(first.privateKey, { crit: { x: true } });
    expect(await asked(provider, `Bearer ${token}`)).toEqual({ reason: 'jose-not-supported' });
  });
});

describe('The keys', () => {
  test('are loaded once for concurrent requests, and again for a token with a new key', async () => {
    const provider = jwtProvider(options);
    const token = await sign();
    const verdicts = await Promise.all(Array.from({ length: 20 }, () => asked(provider, `Bearer ${token}`)));
    expect(verdicts.every((verdict) => verdict?.user === 'other|ada')).toBe(true);
    keys = [await published(second)];
    expect(await asked(provider, `Bearer ${await sign({}, second)}`)).toHaveProperty('user', 'other|ada');
    expect(server.calls.filter((call) => call === KEYS)).toHaveLength(2);
    // The issuer has withdrawn the first key.
    expect(await asked(provider, `Bearer ${token}`)).toEqual({ reason: 'jwks-no-matching-key' });
  });

  test('are loaded at most once in 1.5 s during an outage', async () => {
    const provider = jwtProvider({ ...options, jwksUrl: `${issuer}/jwks` });
    const token = await sign();
    fail = (response) => response.writeHead(500).end();
    pass(0);
    for (const calls of [1, 1, 1, 2, 2]) {
      await expect(asked(provider, `Bearer ${token}`)).rejects.toThrow();
      expect(server.calls).toHaveLength(calls);
      vi.setSystemTime(Date.now() + 500);
    }
  });

  test('stay valid during an outage, and a withdrawn key becomes invalid after it', async () => {
    const provider = jwtProvider(options);
    const token = await sign({ exp: now() + 86_400 });
    expect(await asked(provider, `Bearer ${token}`)).toHaveProperty('user');
    fail = (response) => response.destroy();
    pass(3_600_000);
    expect(await asked(provider, `Bearer ${token}`)).toHaveProperty('user');
    // Whether the issuer has this key is unknown.
    await expect(asked(provider, `Bearer ${await sign({}, second)}`)).rejects.toThrow();
    fail = undefined;
    keys = [await published(second)];
    pass(3_600_000);
    expect(await asked(provider, `Bearer ${token}`)).toEqual({ reason: 'jwks-no-matching-key' });
  });

  test.each<[string, () => void]>([
    ['does not respond', () => (fail = () => undefined)],
    ['responds with an error', () => (fail = (response) => response.writeHead(500).end())],
    ['redirects', () => (fail = (response) => response.writeHead(302, { location: '/elsewhere' }).end())],
    ['responds with text', () => (fail = (response) => response.end('<html>'))],
    [
      'responds with a huge document',
      () => (fail = (response) => response.end(' '.repeat(2 ** 20) + document())),
    ],
    ['never ends its response', () => (fail = (response) => response.write('{'))],
    ['names another issuer', () => (discovery = { issuer: 'https://x.example', jwks_uri: `${issuer}/jwks` })],
    [
      'names an address without encryption',
      () => (discovery = { issuer, jwks_uri: 'http://x.example/jwks' }),
    ],
    ['has no keys', () => (keys = [])],
    ['has a private key', () => (keys = [{ ...privateKey, kid: 'first' }])],
    ['has a malformed key', () => (keys = [{ kty: 'EC', crv: 'P-256', kid: 'first', x: 'AA', y: 'AA' }])],
  ])('cannot be checked if the issuer %s. The next request succeeds after that', async (_title, arrange) => {
    const provider = jwtProvider(options);
    const token = await sign();
    arrange();
    await expect(asked(provider, `Bearer ${token}`)).rejects.toThrow();
    // An expired token and a forbidden algorithm need no key.
    expect(await asked(provider, `Bearer ${await sign({ exp: 1 })}`)).toEqual({ reason: 'jwt-expired' });
    expect(await asked(provider, `Bearer ${forge({ alg: 'none' }, () => 'AA')}`)).toMatchObject({
      reason: 'jose-alg-not-allowed',
    });
    fail = undefined;
    discovery = { issuer, jwks_uri: `${issuer}/jwks` };
    keys = [await published(first)];
    pass(3_600_000);
    expect(await asked(provider, `Bearer ${await sign()}`)).toHaveProperty('user', 'other|ada');
  });
});

test.each<[string, object]>([
  ['without an audience', { audience: '' }],
  ['without an algorithm', { algorithms: [] }],
  ['with a symmetric algorithm', { algorithms: ['ES256', 'HS256'] }],
  ['without signatures', { algorithms: ['none'] }],
  ['with a prefix that could begin another one', { prefix: 'auth0' }],
  ['with two separators in its prefix', { prefix: 'a|b|' }],
  ['with a public address without encryption', { issuer: 'http://auth.example.com' }],
  ['with a public address of the keys without encryption', { jwksUrl: 'http://auth.example.com/jwks' }],
])('A provider %s is an error', (_title, overrides) => {
  expect(() => jwtProvider({ ...options, ...overrides })).toThrow();
});

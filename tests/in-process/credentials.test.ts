import { createPublicKey } from 'node:crypto';
import { foreignKeys, type Signing } from 'clerk-emulator/testing';
import { beforeEach, expect, test, vi } from 'vitest';
import { log } from '#lib/base/log';
import { runMiddleware, startMiddleware } from '../harness/application';
import { startStubServer } from '../harness/dependencies/stub-server';
import { bearer, cookie, ME, now, tokenFor } from '../harness/requests';
import { stopAfterAll } from '../vitest/stop-after-all';

/**
 * The provider's Backend API, and a server of the attacker. Records the requests. The service sends none, because IDP_JWT_KEY is
 * set.
 */
const backendApi = stopAfterAll(await startStubServer());
const idp = await startMiddleware({ CLERK_API_URL: backendApi.url });

beforeEach(() => void vi.spyOn(log, 'warn').mockReturnValue());

const at = (path: string, headers: Record<string, string>) =>
  runMiddleware(`http://localhost:3000${path}`, { headers: { host: 'localhost:3000', ...headers } });

const token = (sub: string, claims: Record<string, unknown> = {}, signing?: Signing) =>
  tokenFor(idp, sub, claims, signing);
const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const tampered = () => {
  const [header, , signature] = token('user_real').split('.');
  return [header, token('user_forged').split('.')[1], signature].join('.');
};
const unsigned = (header: unknown, payload: unknown = {}) =>
  `${base64url(header)}.${base64url(payload)}.AAAA`;
const cookies = (own: string) => ({ cookie: `${own}; __client_uat=1; __clerk_db_jwt=x` });
const withSid = (sid: unknown) => token('user_x', { sid, sts: undefined });
const foreign = foreignKeys();
const jwk = createPublicKey(foreign.publicKey).export({ format: 'jwk' });
const ourKid = idp.signingKey.kid;
const signedBy = (alg: string) => token('user_forged', {}, { header: { alg, kid: undefined } });

/** Headers of a token that another key has signed. */
const FOREIGN: [string, Record<string, unknown>][] = [
  ["the kid of the provider's key", { kid: ourKid }],
  ['an unknown kid', { kid: 'theirs' }],
  ['no kid', { kid: undefined }],
  ['a URL as kid', { kid: `${backendApi.url}/kid` }],
  ['__proto__ as kid', { kid: '__proto__' }],
  ['its key in the header', { kid: ourKid, jwk }],
  ['URLs of its key in the header', { jku: `${backendApi.url}/jku`, x5u: `${backendApi.url}/x5u` }],
  ['a critical extension', { kid: ourKid, crit: ['exp'] }],
];

// tests/unit/credential.test.ts checks the credentials that the SDK does not get.
const INVALID: [string, () => Record<string, string>][] = [
  ['no credential', () => ({})],
  ['an API key', () => bearer('ak_0123456789abcdef')],
  ['a token without a sub', () => bearer(token('user_x', { sub: undefined }))],
  ['a token with an empty sub', () => bearer(token(''))],
  ['a token with a NUL in the sub', () => bearer(token('a\0b'))],
  ['a token with a sub of 256 characters', () => bearer(token('u'.repeat(256)))],
  ['a token with a sub that is not a string', () => bearer(token('user_x', { sub: 7 }))],
  ['a token that expired more than 5 s ago', () => bearer(token('user_x', { exp: now() - 6 }))],
  ['a token that is not valid yet', () => bearer(token('user_x', { nbf: now() + 60 }))],
  ['a token with a time of issue in the future', () => bearer(token('user_x', { iat: now() + 60 }))],
  ['a pending session', () => bearer(token('user_x', { sts: 'pending' }))],
  ...FOREIGN.map(([what, header]): [string, () => Record<string, string>] => [
    `a token that another key has signed, with ${what}`,
    () => bearer(token('user_forged', {}, { header, privateKeyPem: foreign.privateKey })),
  ]),
  ...[undefined, '', null, { id: 'sess_1' }].flatMap((sid): [string, () => Record<string, string>][] => [
    [`a token with the sid ${JSON.stringify(sid)}`, () => bearer(withSid(sid))],
    [`a cookie with the sid ${JSON.stringify(sid)}`, () => cookie(withSid(sid))],
  ]),
  ['a token whose claims were changed after it was signed', () => bearer(tampered())],
  ['a token with the algorithm none', () => bearer(signedBy('none'))],
  ['a token signed with the public key as an HMAC secret', () => bearer(signedBy('HS256'))],
  [
    'a token with the type of an OAuth token',
    () => bearer(token('user_forged', {}, { header: { typ: 'at+jwt' } })),
  ],
  ['a token with the subject of a machine', () => bearer(token('mch_machine'))],
  ['a token with a type that is not ASCII', () => bearer(unsigned({ alg: 'RS256', typ: '☃' }))],
  ['a token whose JWT header is null', () => bearer(unsigned(null))],
  ['a token whose claims are null', () => bearer(unsigned({ alg: 'RS256', typ: 'JWT' }, null))],
  [
    'a token with a key id that contains a line break',
    () => bearer(unsigned({ alg: 'RS256', typ: 'JWT', kid: 'a\r\nb' })),
  ],
  [
    'a session cookie with a token whose type is not ASCII',
    () => cookie(unsigned({ alg: 'RS256', typ: '☃' })),
  ],
  ['a handshake cookie after a tab character', () => cookies('a=b;\t__clerk_handshake=x')],
  [
    'a refresh cookie of an expired session',
    () => ({
      cookie: `__session=${token('user_x', { exp: now() - 60 })}; __refresh=x; __refresh_${'a'.repeat(8)}=x; __client_uat=1; __clerk_db_jwt=x`,
    }),
  ],
];

test.each(INVALID)(
  'The middleware rejects a credential without a redirect or a call of the provider: %s',
  async (_what, headers) => {
    const { readVerdict } = await import('#lib/http/signed-verdict');
    for (const accept of ['application/json', 'text/html']) {
      const { headers: passed, isPassed, response } = await at(ME, { ...headers(), accept });
      expect(isPassed).toBe(true);
      expect(await readVerdict(passed)).toEqual({ reason: expect.any(String) });
      expect([...response.headers.keys()].filter((name) => /^x-clerk|^set-cookie$/.test(name))).toEqual([]);
    }
    expect(backendApi.calls).toEqual([]);
  },
);

test('Without IDP_JWT_KEY, a session is verified with the keys of the provider', async () => {
  const { setEnvironment } = await import('#lib/base/env');
  const { readVerdict } = await import('#lib/http/signed-verdict');
  const { handler } = backendApi;
  backendApi.handler = async ({ url, headers: { authorization = '' } }, response) => {
    const keys = await fetch(`${idp.url}${url}`, { headers: { authorization } });
    response.writeHead(keys.status, { 'content-type': 'application/json' }).end(await keys.text());
  };
  setEnvironment({ ...process.env, IDP_JWT_KEY: '' });
  for (const [what, headers] of INVALID)
    expect(readVerdict((await at(ME, headers())).headers), what).toEqual({ reason: expect.any(String) });
  for (const kid of ['theirs', '', '../../etc/passwd', '__proto__'])
    expect(await userOf(bearer(token('user_1', {}, { header: { kid } }))), kid).toBeUndefined();
  expect(await userOf(bearer(token('user_1')))).toBe('user_1');
  expect(new Set(backendApi.calls)).toEqual(new Set(['GET /v1/jwks']));
  setEnvironment();
  backendApi.handler = handler;
  backendApi.calls.length = 0;
});

/** Returns the user whom the middleware reports to the route, or undefined. */
async function userOf(headers: Record<string, string>): Promise<string | undefined> {
  const { readVerdict } = await import('#lib/http/signed-verdict');
  return (await readVerdict((await at(ME, headers)).headers)).user;
}

test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
  ['An ID token', { aud: 'oauth_client', azp: 'oauth_client', nonce: 'n', sts: undefined }, {}],
  ['A token of a custom JWT template', { email: 'user@example.com', sts: undefined }, {}],
  ['A token whose issuer is the URL of a proxy', { iss: 'https://app.example.com/__clerk' }, {}],
  ['A token whose header contains the category (cat) of session tokens', {}, { cat: 'cl_B7d4PD111AAA' }],
])('%s that has a sid and a signature of the provider is accepted', async (_what, more, header) => {
  expect(await userOf(bearer(token('user_1', more, { header })))).toBe('user_1');
});

test('A token that expired 1 s ago is accepted, because clocks may differ', async () => {
  expect(await userOf(bearer(token('user_1', { exp: now() - 1 })))).toBe('user_1');
});

test('Each of many requests of many users at once has its own user, also with cached tokens', async () => {
  const users = Array.from({ length: 20 }, (_, index) => `user_${index}`);
  const credentials = users.flatMap((user) => [bearer(token(user)), cookie(token(user))]);
  for (let round = 0; round < 2; round += 1)
    expect(await Promise.all(credentials.map(userOf))).toEqual(users.flatMap((user) => [user, user]));
});

test('A bearer token takes precedence over a cookie, even if the bearer token is invalid', async () => {
  const [one, other] = [cookie(token('user_one')), bearer(token('user_other'))];
  for (let round = 0; round < 2; round += 1) {
    expect(await userOf({ ...one, ...other })).toBe('user_other');
    expect(await userOf({ ...one, ...bearer('ak_0123') })).toBeUndefined();
    expect(await userOf(one)).toBe('user_one');
  }
  expect(backendApi.calls).toEqual([]);
});

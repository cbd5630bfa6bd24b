import { foreignKeys, type Signing } from 'clerk-emulator/testing';
import { beforeAll, expect, test, vi } from 'vitest';
import { log } from '#lib/base/log';
import { runMiddleware } from '../harness/application';
import { BUILD_TIME_VALUES } from '../harness/build';
import { startStubServer } from '../harness/dependencies/stub-server';
import { startProvider } from '../harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY } from '../harness/keys';
import { bearer, cookie, ME, now, tokenFor } from '../harness/requests';
import { stopAfterAll } from '../vitest/stop-after-all';

const idp = stopAfterAll(await startProvider());
/** Records requests to the provider's Backend API. The service sends none, because IDP_JWT_KEY is set. */
const backendApi = stopAfterAll(await startStubServer());

beforeAll(() => {
  vi.spyOn(log, 'warn').mockReturnValue();
  const variables = {
    ...BUILD_TIME_VALUES,
    IDP_SECRET_KEY: SECRET_KEY,
    IDP_PUBLISHABLE_KEY: PUBLISHABLE_KEY,
    IDP_JWT_KEY: idp.publicKeyPem,
    CLERK_API_URL: backendApi.url,
    IDP_AUTHORIZED_PARTIES: '',
  };
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  return () => vi.unstubAllEnvs();
});

const at = (path: string, headers: Record<string, string>) =>
  runMiddleware(`http://localhost:3000${path}`, { headers: { host: 'localhost:3000', ...headers } });

const token = (sub: string, claims: Record<string, unknown> = {}, signing?: Signing) =>
  tokenFor(idp, sub, claims, signing);
const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const claims = () => ({
  ...{ sub: 'user_forged', sid: 'sess_1', iss: idp.issuer, sts: 'active' },
  ...{ iat: now(), nbf: now() - 10, exp: now() + 60 },
});
const tampered = () => {
  const [header, , signature] = token('user_real').split('.');
  return [header, base64url(claims()), signature].join('.');
};
const unsigned = (header: unknown, payload: unknown = claims()) =>
  `${base64url(header)}.${base64url(payload)}.AAAA`;
const cookies = (own: string) => ({ cookie: `${own}; __client_uat=1; __clerk_db_jwt=x` });
const signedBy = (alg: string) => token('user_forged', {}, { header: { alg, kid: undefined } });

const INVALID: [string, () => Record<string, string>][] = [
  ['no credential', () => ({})],
  ['an empty bearer', () => ({ authorization: 'Bearer ' })],
  ['a bearer that is not a token', () => bearer('hello')],
  ['a bearer of two dots', () => bearer('..')],
  ['a session token with the scheme Basic', () => ({ authorization: `Basic ${token('user_x')}` })],
  ['a token without a sub', () => bearer(token('user_x', { sub: undefined }))],
  ['a token with an empty sub', () => bearer(token(''))],
  ['a token with a NUL in the sub', () => bearer(token('a\0b'))],
  ['a token with a sub of 256 characters', () => bearer(token('u'.repeat(256)))],
  ['a token with a sub that is not a string', () => bearer(token('user_x', { sub: 7 }))],
  ['a token that expired more than 5 s ago', () => bearer(token('user_x', { exp: now() - 6 }))],
  ['a token that is not valid yet', () => bearer(token('user_x', { nbf: now() + 60 }))],
  ['a token with a time of issue in the future', () => bearer(token('user_x', { iat: now() + 60 }))],
  ['a pending session', () => bearer(token('user_x', { sts: 'pending' }))],
  [
    'a token that the key of another instance signed',
    () => bearer(token('user_forged', {}, { privateKeyPem: foreignKeys().privateKey })),
  ],
  ['a token whose claims were changed after it was signed', () => bearer(tampered())],
  ['a token with the algorithm none', () => bearer(signedBy('none'))],
  ['a token signed with the public key as an HMAC secret', () => bearer(signedBy('HS256'))],
  [
    'a token with the type of an OAuth token',
    () => bearer(token('user_forged', {}, { header: { typ: 'at+jwt' } })),
  ],
  ['a token with the subject of a machine', () => bearer(token('mch_machine'))],
  ...[' x', ' Bearer ', '==', ' ='].flatMap((suffix): [string, () => Record<string, string>][] => [
    [
      `a token with the type of an OAuth token, followed by "${suffix}"`,
      () => bearer(token('user_forged', {}, { header: { typ: 'at+jwt' } }) + suffix),
    ],
    [
      `a token with the subject of a machine, followed by "${suffix}"`,
      () => bearer(token('mch_machine') + suffix),
    ],
    [
      `a token with the subject of a machine in a cookie, followed by "${suffix}"`,
      () => cookie(token('mch_machine') + suffix),
    ],
  ]),
  ['an API key', () => bearer('ak_0123456789abcdef')],
  ['a machine token', () => bearer('mt_0123456789abcdef')],
  ['an OAuth access token', () => bearer('oat_0123456789abcdef')],
  ['a machine token without scheme', () => ({ authorization: 'mt_0123456789abcdef' })],
  ['a token with a type that is not ASCII', () => bearer(unsigned({ alg: 'RS256', typ: '☃' }))],
  ['a token with an algorithm that is not ASCII', () => bearer(unsigned({ alg: '☃', typ: 'JWT' }))],
  ['a token whose JWT header is null', () => bearer(unsigned(null))],
  ['a token whose claims are null', () => bearer(unsigned({ alg: 'RS256', typ: 'JWT' }, null))],
  [
    'a token with a key id that contains a line break',
    () => bearer(unsigned({ alg: 'RS256', typ: 'JWT', kid: 'a\r\nb' })),
  ],
  ['a session cookie with a token whose claims are null', () => cookie(unsigned({ alg: 'RS256' }, null))],
  [
    'a session cookie with a token whose type is not ASCII',
    () => cookie(unsigned({ alg: 'RS256', typ: '☃' })),
  ],
  ['a handshake cookie after a tab character', () => cookies('a=b;\t__clerk_handshake=x')],
  ['a handshake nonce after a tab character', () => cookies('a=b;\t__clerk_handshake_nonce=x')],
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
    const { readVerdict } = await import('#lib/idp/verdict');
    for (const accept of ['application/json', 'text/html']) {
      const { headers: passed, isPassed, response } = await at(ME, { ...headers(), accept });
      expect(isPassed).toBe(true);
      expect(await readVerdict(passed)).toEqual({ reason: expect.any(String) });
      expect([...response.headers.keys()].filter((name) => /^x-clerk|^set-cookie$/.test(name))).toEqual([]);
    }
    expect(backendApi.calls).toEqual([]);
  },
);

test('Without IDP_JWT_KEY, an invalid credential is checked too, if the provider returns its keys', async () => {
  const { parseEnvironment, setEnvironment } = await import('#lib/base/env');
  const { readVerdict } = await import('#lib/idp/verdict');
  const { handler } = backendApi;
  backendApi.handler = async ({ url, headers: { authorization = '' } }, response) => {
    const keys = await fetch(`${idp.url}${url}`, { headers: { authorization } });
    response.writeHead(keys.status, { 'content-type': 'application/json' }).end(await keys.text());
  };
  setEnvironment(parseEnvironment({ ...process.env, IDP_JWT_KEY: '' }));
  for (const [what, headers] of INVALID)
    expect(readVerdict((await at(ME, headers())).headers), what).toEqual({ reason: expect.any(String) });
  expect(new Set(backendApi.calls)).toEqual(new Set(['GET /v1/jwks']));
  setEnvironment(undefined);
  backendApi.handler = handler;
  backendApi.calls.length = 0;
});

test.each(['ak_0123456789', 'mt_0123456789', 'oat_0123456789'])(
  'A page request with an API key, a machine token or an OAuth token does not make the service call the provider: %s',
  async (credential) => {
    await at('/', bearer(credential));
    expect(backendApi.calls).toEqual([]);
  },
);

/** Returns the user whom the middleware reports to the route, or undefined. */
async function userOf(headers: Record<string, string>): Promise<string | undefined> {
  const { readVerdict } = await import('#lib/idp/verdict');
  return (await readVerdict((await at(ME, headers)).headers)).user;
}

test('Each of many concurrent requests is attributed to the user of its bearer token or cookie, also when the sessions are cached', async () => {
  const sessions = Array.from({ length: 10 }, (_, index) => {
    const user = `user_${index}`;
    return [bearer(token(user)), cookie(token(user))].map((headers) => ({ user, headers }));
  }).flat();
  for (let round = 0; round < 2; round += 1)
    expect(await Promise.all(sessions.map(({ headers }) => userOf(headers)))).toEqual(
      sessions.map(({ user }) => user),
    );
});

test('A bearer token takes precedence over a cookie, even if the bearer token is invalid', async () => {
  const [one, other] = [cookie(token('user_one')), bearer(token('user_other'))];
  for (let round = 0; round < 2; round += 1) {
    expect(await userOf({ ...one, ...other })).toBe('user_other');
    expect(await userOf({ ...one, ...bearer('ak_0123') })).toBeUndefined();
    expect(await userOf(one)).toBe('user_one');
  }
});

import { expect, test } from 'vitest';
import { extractCredential, parseCookies, stripSdkHeaders, timesOf } from '#lib/idp/extract-credential';

const TOKEN = 'eyJh.eyJz.c2ln';
/** An authorized party: an origin whose requests may be authenticated by cookies. */
const PARTY = 'https://app.example';
const extract = (headers: Record<string, string>, method = 'GET') =>
  extractCredential({ method, headers: new Headers({ host: 'api.example', ...headers }) }, [PARTY]);
const cookie = { cookie: `__session=${TOKEN}` };

test.each([['Bearer ak_secret'], ['Bearer'], [`Bearer ${TOKEN} x`], ['mt_token']])(
  'A malformed authorization header is rejected even if there is a session cookie: %s',
  (authorization) => {
    expect(extract({ authorization, ...cookie })).toEqual({
      credential: undefined,
      rejectionReason: 'malformed',
    });
  },
);

test.each([
  ['GET', { 'sec-fetch-site': 'same-origin' }, true],
  ['POST', { 'sec-fetch-site': 'same-origin' }, true],
  ['GET', { 'sec-fetch-site': 'same-site' }, true],
  ['POST', { 'sec-fetch-site': 'same-site' }, false],
  ['POST', { 'sec-fetch-site': 'same-site', origin: 'https://other.example' }, false],
  ['POST', { 'sec-fetch-site': 'same-site', origin: PARTY }, true],
  ['POST', { 'sec-fetch-site': 'same-site', origin: 'https://api.example' }, false],
  ['HEAD', { 'sec-fetch-site': 'same-site' }, true],
  ['OPTIONS', { 'sec-fetch-site': 'same-site' }, true],
  ['POST', { 'sec-fetch-site': 'none' }, true],
  ['POST', { 'sec-fetch-site': 'a-later-value' }, false],
  ['GET', { 'sec-fetch-site': 'a-later-value' }, false],
  ['POST', {}, true],
  ['GET', { 'sec-fetch-site': 'cross-site' }, false],
  ['GET', { 'sec-fetch-site': 'cross-site', origin: PARTY }, false],
  ['POST', { origin: 'https://api.example' }, true],
  ['POST', { origin: 'https://other.example' }, false],
  ['POST', { origin: 'null' }, false],
])(
  'The session cookie of a request with the method %s and the headers %j is accepted: %s',
  (method, headers, counts) => {
    expect(extract({ ...cookie, ...headers }, method).rejectionReason).toBe(
      counts ? undefined : 'foreign-cookie',
    );
  },
);

test.each([
  [`Bearer ${TOKEN}`, TOKEN],
  [`bEARER   ${TOKEN}  `, TOKEN],
  [TOKEN, TOKEN],
  [`x${TOKEN}`, 'malformed'],
  [`Bearer x${TOKEN}`, 'malformed'],
  [`Bearer ${TOKEN}!`, 'malformed'],
  [`Bearer ${TOKEN}.c2ln`, 'malformed'],
  ['Bearer eyJh..c2ln', 'malformed'],
  ['Bearer eyJh.eyJz.', 'malformed'],
  ['', 'malformed'],
  [`Bearer${TOKEN}`, 'malformed'],
  [`Bearer x ${TOKEN}`, 'malformed'],
  ['Basic YTpi', 'absent'],
  ['Digest  a b', 'absent'],
])('extractCredential() reads the authorization header %j as: %s', (authorization, expected) => {
  const { credential, rejectionReason } = extract({ authorization });
  expect(rejectionReason ?? credential?.token ?? 'absent').toBe(expected);
  if (credential)
    expect(credential).toEqual({ header: 'authorization', value: `Bearer ${TOKEN}`, token: TOKEN });
});

const OTHER = 'eyJo.eyJz.c2ln';

test.each([
  [`__session=${TOKEN}`, `__session=${TOKEN}`, TOKEN],
  [`a=b; __session_x=${TOKEN} ;c`, `__session_x=${TOKEN}`, TOKEN],
  [`__session=${TOKEN}; __session_x=${TOKEN}`, `__session=${TOKEN}; __session_x=${TOKEN}`, TOKEN],
  [`__session=${TOKEN}; __session_x=${OTHER}`, `__session=${TOKEN}; __session_x=${OTHER}`, undefined],
  [
    `__clerk_db_jwt=a=b; x__client_uat=1; __client_uat_x=2; __client_uatx=3; __session=${TOKEN}`,
    `__clerk_db_jwt=a=b; __client_uat_x=2; __session=${TOKEN}`,
    TOKEN,
  ],
  [`__session=${TOKEN}; __session_x=no-token`, `__session=${TOKEN}`, TOKEN],
])(
  "extractCredential() keeps only well-formed cookies of the identity provider's SDK. It sets `token` only if all session tokens in these cookies are equal: %j",
  (given, value, token) => {
    expect(extract({ cookie: given })).toEqual({ credential: { header: 'cookie', value, token } });
  },
);

test.each([
  '',
  `__sessions=${TOKEN}`,
  `x__session=${TOKEN}`,
  `__client_uat___session=${TOKEN}`,
  '__session=',
  '__client_uat=1',
])(
  'For cookies without a session token, extractCredential() returns no credential and no rejection reason: %j',
  (given) => {
    expect(extract({ cookie: given, 'sec-fetch-site': 'cross-site' })).toEqual({ credential: undefined });
  },
);

test('parseCookies() trims names and values, keeps equals signs in values, and returns one empty cookie if there is no cookie header', () => {
  expect(parseCookies(new Headers({ cookie: ' a = b=c ;d' }))).toEqual([
    { name: 'a', value: 'b=c' },
    { name: 'd', value: '' },
  ]);
  expect(parseCookies(new Headers())).toEqual([{ name: '', value: '' }]);
});

test('stripSdkHeaders() removes only headers whose name starts with x-clerk- or x-identity-link-', () => {
  const given = {
    'x-clerk-a': '1',
    'x-identity-link-a': '1',
    'x-clerks': '1',
    'my-x-clerk-a': '1',
    cookie: 'a',
  };
  expect(Object.fromEntries(stripSdkHeaders(new Headers(given)))).toEqual({
    'x-clerks': '1',
    'my-x-clerk-a': '1',
    cookie: 'a',
  });
});

test('timesOf() returns the times `exp` and `iat` of a token. It throws if `exp` is not a number or if the token is malformed', () => {
  const tokenOf = (payload: string) => `ey.${Buffer.from(payload).toString('base64url')}.x`;
  expect(timesOf(tokenOf('{"exp":7,"iat":2,"a":1}'))).toEqual({ exp: 7, iat: 2 });
  expect(timesOf(tokenOf('{"exp":7}'))).toEqual({ exp: 7 });
  for (const token of [tokenOf('{}'), tokenOf('{"exp":"7"}'), 'ey', ''])
    expect(() => timesOf(token)).toThrow();
});

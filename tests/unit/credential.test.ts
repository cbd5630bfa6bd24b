import { expect, test } from 'vitest';
import { extractCredential } from '#lib/clerk/sdk-formats';
import { clientHeaders, parseCookies } from '#lib/http/credential';

const TOKEN = 'eyJh.eyJz.c2ln';
/** An authorized party: an origin whose requests may be authenticated by cookies. */
const PARTY = 'https://app.example';
const extract = (headers: Record<string, string>, method = 'GET') =>
  extractCredential(method, new Headers({ host: 'api.example', ...headers }), [PARTY]);
const cookie = { cookie: `__session=${TOKEN}` };

const site = (value: string) => ({ 'sec-fetch-site': value });
const OWN = { origin: 'https://api.example' };
const FOREIGN = { origin: 'https://other.example' };

test.each<[Record<string, string>, GET: boolean, POST: boolean]>([
  [{}, true, true],
  [site('same-origin'), true, true],
  [{ ...site('same-origin'), ...OWN }, true, true],
  [OWN, true, true],
  [site('none'), true, true],
  [{ origin: PARTY }, true, true],
  [{ ...site('same-site'), origin: PARTY }, true, true],
  [site('same-site'), true, false],
  [{ ...site('same-site'), ...OWN }, true, false],
  [{ ...site('same-site'), ...FOREIGN }, true, false],
  [site('cross-site'), false, false],
  [{ ...site('cross-site'), origin: PARTY }, false, false],
  [{ ...site('cross-site'), ...FOREIGN }, false, false],
  [{ ...site('none'), ...FOREIGN }, false, false],
  [site('a-later-value'), false, false],
  [FOREIGN, false, false],
  [{ origin: 'null' }, false, false],
  [{ origin: 'evil' }, false, false],
])(
  'The headers %j decide whether a session cookie is accepted (GET: %s, POST: %s), and a bearer token is always accepted',
  (headers, get, post) => {
    for (const [method, isAccepted] of [
      ['GET', get],
      ['HEAD', get],
      ['OPTIONS', get],
      ['POST', post],
    ] as const) {
      const accepted = { header: 'cookie', value: cookie.cookie };
      expect(extract({ ...cookie, ...headers }, method)).toEqual(isAccepted ? accepted : 'foreign-cookie');
      expect(extract({ authorization: TOKEN, ...headers }, method)).toMatchObject({
        header: 'authorization',
      });
    }
  },
);

test.each([
  [`Bearer ${TOKEN}`, TOKEN],
  [`bEARER   ${TOKEN}  `, TOKEN],
  [TOKEN, TOKEN],
  [`x${TOKEN}`, 'malformed'],
  [`Bearer ${TOKEN}!`, 'malformed'],
  ['Bearer eyJh.eyJz.', 'malformed'],
  ['', 'malformed'],
  [`Bearer${TOKEN}`, 'malformed'],
  [`Bearer ${TOKEN}==`, 'malformed'],
  [`Bearer ${TOKEN} Bearer `, 'malformed'],
  ['Bearer ak_0123456789abcdef', 'malformed'],
  ['mt_token', 'malformed'],
  ['Bearer', 'malformed'],
  ['Bearer oat_0123456789abcdef', 'opaque-token'],
  ['Basic YTpi', 'the cookie'],
  ['Digest  a b', 'the cookie'],
])(
  'The authorization header %j of a request with a session cookie contains: %s',
  (authorization, expected) => {
    const credential = extract({ authorization, ...cookie });
    if (expected === TOKEN) expect(credential).toEqual({ header: 'authorization', value: `Bearer ${TOKEN}` });
    else if (expected === 'the cookie')
      expect(credential).toEqual({ header: 'cookie', value: cookie.cookie });
    else expect(credential).toBe(expected);
  },
);

const OTHER = 'eyJo.eyJz.c2ln';

test.each([
  [`__session=${TOKEN}`, `__session=${TOKEN}`],
  [`a=b; __session_x=${TOKEN} ;c`, `__session_x=${TOKEN}`],
  [`__session=${TOKEN}; __session_x=${OTHER}`, `__session=${TOKEN}; __session_x=${OTHER}`],
  [
    `__clerk_db_jwt=a=b; x__client_uat=1; __client_uat_x=2; __client_uatx=3; __session=${TOKEN}`,
    `__clerk_db_jwt=a=b; __client_uat_x=2; __session=${TOKEN}`,
  ],
  [`__session=${TOKEN}; __session_x=no-token`, `__session=${TOKEN}`],
  [`__session=${TOKEN}; __session_x=${OTHER}==; __session_y=${OTHER} x`, `__session=${TOKEN}`],
])('The SDK gets only its own well-formed cookies: %j', (given, value) => {
  expect(extract({ cookie: given })).toEqual({ header: 'cookie', value });
});

test.each(['', `x__session=${TOKEN}`, `__client_uat___session=${TOKEN}`, '__session='])(
  'Cookies without a session token are not a credential: %j',
  (given) => {
    expect(extract({ cookie: given, 'sec-fetch-site': 'cross-site' })).toBe('no-credential');
  },
);

test('The names and values of cookies are trimmed, and cookies without a name are omitted', () => {
  expect(parseCookies(new Headers({ cookie: ' a = b=c ;d;=e;' }))).toEqual([
    { name: 'a', value: 'b=c' },
    { name: 'd', value: '' },
  ]);
});

test('A route gets no header that could forge a session or make Next.js skip the route, and every other header', () => {
  const kept = { 'x-clerks': '1', 'my-x-clerk-a': '1', cookie: 'a' };
  const removed = { 'x-clerk-a': '1', 'x-identity-link-verdict': '1', 'x-middleware-prefetch': '1' };
  expect(Object.fromEntries(clientHeaders(new Headers({ ...kept, ...removed })))).toEqual(kept);
});

test("A route gets at most 180 cookies, and those of the provider's SDK are dropped last", () => {
  const own = Array.from({ length: 1_900 }, (_, index) => `c${index}=`);
  const cookies = [...own, `__session=${TOKEN}`, '__client_uat=1'].join('; ');
  const kept = parseCookies(clientHeaders(new Headers({ cookie: cookies }))).map(({ name }) => name);
  expect(kept).toEqual([
    '__session',
    '__client_uat',
    ...Array.from({ length: 178 }, (_, index) => `c${index}`),
  ]);
});

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { BUILD_FOLDER } from '../build';

/** Text in many generated values of a request. It must not appear in the log. */
export const MARK = 'mark4e1f';

/** A request as raw bytes. */
export interface HostileRequest {
  readonly bytes: string;
  /** The request line. */
  readonly line: string;
}

const METHODS = ['GET', 'POST', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const ODD_METHODS = ['TRACE', 'PROPFIND', 'QUERY', 'LINK', 'PURGE', 'get', 'FOO'];

const ADDRESSES = [
  ...[
    '/users/v1/me',
    '/auth/v1/register',
    '/webhooks/idp/v1/user-created',
    '/users/v1/x',
    '/auth',
    '/webhooks/',
  ],
  ...[
    '/',
    '/account',
    '/sign-in',
    '/sign-up',
    '/sign-in/sso-callback',
    '/icon.svg',
    '/robots.txt',
    '/favicon.ico',
  ],
  ...[
    '/_next/static/x.js',
    '/_next/image',
    '/_next/data/x/index.json',
    '/_next',
    '/_not-found',
    '/_error',
    '/404',
  ],
  ...[
    '/500',
    '/_global-error',
    '/api-not-found',
    '/api-not-found/x',
    '/__nextjs_original-stack-frame',
    '/__clerk/v1/x',
  ],
  ...[
    '/_document',
    '/_next/webpack-hmr',
    '/.well-known/x',
    '/index',
    '/index.html',
    '/api/x',
    '/server-actions',
  ],
];

/**
 * Functions that return a variant of a path. A server may normalize a variant to the original path. The last three functions
 * ignore the path.
 */
const SPELLINGS: ((address: string) => string)[] = [
  (address) => `${address}/`,
  (address) => `/${address}`,
  (address) => `${address}.rsc`,
  (address) => `${address}.segments/_tree.segment.rsc`,
  (address) => `${address}.segments/${MARK}.segment.rsc`,
  (address) => `${address}.prefetch.rsc`,
  (address) => `${address}.action`,
  (address) => `${address}.json`,
  (address) => `${address}.html`,
  (address) => `/_next/data/${buildId}${address}.json`,
  (address) => `/_next/static/../..${address}`,
  (address) => `/_next/static/%2e%2e/%2E%2E${address}`,
  (address) => `/_next/static/..%2f..${address}`,
  (address) => `/${MARK}/..${address}`,
  (address) => `/${MARK}/%2e%2e${address}`,
  (address) => `/.${address}`,
  (address) => `${address}/${MARK}`,
  (address) => `${address}/%2561${MARK}`,
  (address) => `${address}/%ff`,
  (address) => `${address}%00`,
  (address) => `${address}/%0d%0a${MARK}:x`,
  (address) => `${address};${MARK}=1`,
  (address) => `${address}%3f${MARK}`,
  (address) => address.replaceAll('e', '%65'),
  (address) => address.toUpperCase(),
  (address) => address.replaceAll('/', '\\'),
  (address) => `http://${MARK}.example${address}`,
  (address) => `${address}#${MARK}`,
  (address) => `${address}/[[...${MARK}]]`,
  (address) => `${address}/(.)${MARK}`,
  (address) => `${address}/${'a'.repeat(3000)}`,
  () => '*',
  () => '//',
  () => `/%${MARK}`,
];

const read = (file: string) => {
  const full = path.join(BUILD_FOLDER, file);
  return existsSync(full) ? readFileSync(full, 'utf8') : '';
};
const buildId = read('BUILD_ID').trim();
/** Ids of the server actions of the build. An attacker can read these ids in the scripts of the pages. */
const actions = [...read('server/server-reference-manifest.json').matchAll(/"([0-9a-f]{40,64})"/g)].map(
  ([, id = '']) => id,
);

const QUERIES = [
  `?${MARK}=${MARK}`,
  `?ticket=${MARK}&x=%ff%${MARK}`,
  `?_rsc=${MARK}`,
  `?__clerk_handshake=${MARK}`,
  `?__clerk_handshake=${MARK}.${MARK}.${MARK}`,
  `?__clerk_redirect_url=https://${MARK}.example`,
  `?__clerk_db_jwt=${MARK}&__clerk_status=${MARK}`,
  `?__nextDefaultLocale=${MARK}&nxtPpath=${MARK}&nextInternalLocale=${MARK}`,
  `?__flight__=1&__amp=${MARK}`,
  `?url=${MARK}&w=64&q=75`,
];

const tree = (value: unknown) => encodeURIComponent(JSON.stringify(value));
/** Values of Next-Router-State-Tree, the header in which the browser code of Next.js sends the state of its router. */
const TREES = [
  MARK,
  '%',
  `%7B"${MARK}"`,
  '[]',
  tree(null),
  tree(['', {}]),
  tree(['', { children: ['__PAGE__', {}] }]),
  tree(['', { children: [MARK, { children: ['__PAGE__', {}, null, 'refetch'] }] }]),
  tree(['', { children: [['sign-in', MARK, 'oc', null], { children: ['__PAGE__', {}] }] }, null, null, 1]),
  tree(['', { children: [['sign-in', MARK, 'x'], {}] }]),
  tree(['', { [MARK]: ['x', {}] }, [MARK, MARK], 'metadata-only', 16]),
  tree([{ toString: MARK }, {}]),
];

/** Headers that Node.js, Next.js or the provider's SDK reads, each with ordinary and hostile values. */
const HEADERS: Record<string, readonly string[]> = {
  RSC: ['1', '0', MARK],
  'Next-Router-State-Tree': TREES,
  'Next-Router-Prefetch': ['1', '2', '3', MARK],
  'Next-Router-Segment-Prefetch': ['/_tree', '/_full', '/__PAGE__', `/${MARK}`, '%', MARK],
  'Next-Url': ['/account', `/${MARK}`, '//', '%', MARK],
  'Next-HMR-Refresh': ['1', MARK],
  'Next-Resume': ['1', MARK],
  'Next-Instant-Navigation-Testing': ['1', MARK],
  'Next-Action': [
    ...['x', MARK, `${MARK}\\n`, '0'.repeat(42), '7f'.repeat(21), '60'.repeat(21), `$$typeof`, '__proto__'],
    ...actions,
  ],
  'X-Action-Forwarded': ['1', MARK],
  'X-Action-Redirect': [`/${MARK}`],
  'X-Nextjs-Data': ['1', MARK],
  'X-Nextjs-Request-Id': [MARK],
  'X-Nextjs-Html-Request-Id': [MARK],
  'X-Nextjs-Postponed': ['1', '2'],
  'X-Next-Resume-State-Length': ['10', MARK],
  'X-Next-Cache-Tags': [MARK],
  'X-Next-Revalidated-Tags': [MARK],
  'X-Middleware-Prefetch': ['1'],
  'X-Middleware-Subrequest': ['middleware', 'middleware:middleware:middleware:middleware:middleware'],
  'X-Middleware-Rewrite': [`/${MARK}`, '/users/v1/me'],
  'X-Middleware-Redirect': [`/${MARK}`],
  'X-Middleware-Next': ['1'],
  'X-Middleware-Override-Headers': ['x-clerk-auth-status'],
  'X-Middleware-Request-X-Clerk-Auth-Status': ['signed-in'],
  'X-Middleware-Set-Cookie': [`a=${MARK}`],
  'X-Matched-Path': ['/users/v1/me', `/${MARK}`],
  'X-Now-Route-Matches': [`1=${MARK}`],
  'X-Invoke-Path': [`/${MARK}`],
  'X-Invoke-Status': ['500'],
  'X-Invoke-Error': [`{"message":"${MARK}"}`],
  'X-Prerender-Revalidate': [MARK],
  'X-Rewrite-Url': ['/users/v1/me'],
  'X-Original-Url': ['/users/v1/me'],
  'X-Forwarded-Host': [`${MARK}.example`, 'a, b', '%'],
  'X-Forwarded-Proto': ['https', 'https,http', MARK],
  'X-Forwarded-Port': ['1', MARK],
  'X-Forwarded-For': [MARK],
  'X-HTTP-Method-Override': ['OPTIONS', MARK],
  'X-Clerk-Auth-Status': ['signed-in', MARK],
  'X-Clerk-Auth-Token': [MARK],
  'X-Clerk-Auth-Reason': [MARK],
  'X-Clerk-Debug': ['1'],
  'X-Clerk-Request-Data': [MARK],
  'Clerk-Proxy-Url': [`https://${MARK}.example`],
  'Content-Security-Policy': [`script-src 'nonce-${MARK}'`, "script-src 'nonce-<x>'"],
  'X-Nonce': [MARK],
  Authorization: [
    `Bearer ${MARK}`,
    `Bearer ey${MARK}.${MARK}.${MARK}`,
    `Basic ${MARK}`,
    `Bearer ak_${MARK}`,
    'Bearer',
  ],
  Cookie: [
    `__session=ey${MARK}.${MARK}.${MARK}; __client_uat=1`,
    `__clerk_handshake=${MARK}; __clerk_db_jwt=${MARK}`,
    `__clerk_handshake_nonce=${MARK}`,
    `__prerender_bypass=${MARK}; __next_preview_data=${MARK}`,
    `__refresh_x=${MARK}; ${MARK}`,
    'a=%ff; =; ;;',
  ],
  Origin: ['null', MARK, `https://${MARK}.example`, 'http://localhost', '//', 'http://[', 'file://'],
  Referer: [`https://${MARK}.example/${MARK}`, MARK, '//'],
  'Sec-Fetch-Site': ['cross-site', 'same-site', 'same-origin', 'none', MARK],
  'Sec-Fetch-Dest': ['document', 'image', 'empty', 'iframe', MARK],
  'Sec-Fetch-Mode': ['navigate', 'cors', MARK],
  'Content-Type': [
    ...['application/json', 'text/plain;charset=UTF-8', 'application/x-www-form-urlencoded', MARK, ''],
    ...[
      'multipart/form-data',
      `multipart/form-data; boundary=${MARK}`,
      'multipart/form-data; boundary=',
      'text/x-component',
    ],
  ],
  'Content-Encoding': ['gzip', MARK],
  Accept: ['text/html', 'text/x-component', '*/*', MARK],
  'Accept-Encoding': ['gzip', 'br, gzip', MARK],
  'Accept-Language': [MARK, 'de;q=x'],
  Range: ['bytes=0-1', 'bytes=9999999-', MARK],
  'If-None-Match': ['*', MARK],
  'If-Modified-Since': [MARK, 'Thu, 01 Jan 1970 00:00:00 GMT'],
  'If-Match': [MARK],
  Expect: ['100-continue', MARK],
  Purpose: ['prefetch'],
  'User-Agent': ['Googlebot', MARK, 'facebookexternalhit/1.1', 'Mozilla/5.0'],
  Upgrade: ['websocket', 'h2c', MARK],
  Traceparent: [`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, MARK],
  Baggage: [MARK],
  Host: ['localhost', `${MARK}.example`, 'a b', '', '[::1', 'localhost:99999'],
};

const BODIES = [
  '[]',
  '{}',
  '[',
  MARK,
  `{"identityProviderUserId":"${MARK}"}`,
  `["$F1","${MARK}"]`,
  `["$K1"]`,
  `[{"then":"$1:${MARK}"}]`,
  `--${MARK}\r\nContent-Disposition: form-data; name="$ACTION_ID_${MARK}"\r\n\r\n\r\n--${MARK}--\r\n`,
  `--${MARK}\r\nContent-Disposition: form-data; name="$ACTION_REF_1"\r\n\r\n${MARK}\r\n--${MARK}--\r\n`,
  `--${MARK}\r\n`,
  `$ACTION_KEY=${MARK}&a=%ff`,
  `\x1b[31m${MARK}\n\nfalse line\n`,
];

/**
 * The end of a request: the headers that delimit its body, the empty line and the body. Some of the ends are invalid. For a
 * request without a body, the value is the empty string, and `hostileRequest` adds the empty line.
 */
const framing = fc.oneof(
  { weight: 6, arbitrary: fc.constant('') },
  {
    weight: 6,
    arbitrary: fc.constantFrom(...BODIES).map((body) => `Content-Length: ${body.length}\r\n\r\n${body}`),
  },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(...BODIES)
      .map((body) => `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      `Content-Length: 100000\r\n\r\n${MARK}`,
      `Transfer-Encoding: chunked\r\n\r\n5\r\n${MARK}`,
      `Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
      `Transfer-Encoding: chunked\r\n\r\nzz\r\n${MARK}`,
      `Transfer-Encoding: ${MARK}\r\n\r\n`,
      `X-${MARK}`,
      `Content-Length: 2600000\r\n\r\n${MARK.repeat(325_000)}`,
    ),
  },
);

const header = fc
  .constantFrom(...Object.keys(HEADERS))
  .chain((name) => fc.constantFrom(...(HEADERS[name] ?? [])).map((value) => ({ name, value })));

/** Requests with hostile paths, headers and bodies. Many of them target features of Next.js. */
const hostileRequest: fc.Arbitrary<HostileRequest> = fc
  .record({
    method: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...METHODS) },
      { weight: 1, arbitrary: fc.constantFrom(...ODD_METHODS) },
    ),
    address: fc.constantFrom(...ADDRESSES),
    spell: fc.option(fc.constantFrom(...SPELLINGS), { freq: 3 }),
    query: fc.option(fc.constantFrom(...QUERIES), { nil: '', freq: 3 }),
    headers: fc.uniqueArray(header, { maxLength: 5, selector: ({ name }) => name }),
    framing,
  })
  .map(({ method, address, spell, query, headers, framing }) => {
    const line = `${method} ${spell ? spell(address) : address}${query} HTTP/1.1`;
    const host = headers.some(({ name }) => name === 'Host') ? '' : 'Host: localhost\r\n';
    const fields = headers.map(({ name, value }) => `${name}: ${value}\r\n`).join('');
    return { line, bytes: `${line}\r\n${host}${fields}Connection: close\r\n${framing || '\r\n'}` };
  });

/** Returns `count` generated requests. The same seed gives the same requests. */
export const hostileRequests = (count: number, seed: number): HostileRequest[] =>
  fc.sample(hostileRequest, { numRuns: count, seed });

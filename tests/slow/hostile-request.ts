import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { BUILD_FOLDER } from '../harness/build';

/** Text in many generated values of a request. It must not appear in the log. */
export const MARK = 'mark4e1f';

/** A request as raw bytes. `line` is its request line. */
export interface HostileRequest {
  readonly bytes: string;
  readonly line: string;
}

const METHODS = 'GET GET GET GET POST POST POST HEAD PUT PATCH DELETE OPTIONS TRACE QUERY get FOO'.split(' ');
const API = '/users/v1/me /auth/v1/register /webhooks/idp/v1/user-created /users/v1/x /auth /webhooks/';
const PAGES = '/ /account /docs /sign-in /sign-in/sso-callback /robots.txt /_not-found /_error /500';
const INTERNAL = '/_next/static/x.js /_next/image /_next/data/x/index.json /_global-error /__clerk/v1/x';
const ADDRESSES = [API, PAGES, INTERNAL].flatMap((addresses) => addresses.split(' '));

const read = (file: string) => {
  const full = path.join(BUILD_FOLDER, file);
  return existsSync(full) ? readFileSync(full, 'utf8') : '';
};
const buildId = read('BUILD_ID').trim();
/** Ids of the server actions of the build. An attacker can read these ids in the scripts of the pages. */
const ACTIONS = [...read('server/server-reference-manifest.json').matchAll(/"([0-9a-f]{40,64})"/g)].map(
  ([, id = '']) => id,
);

/** Variants of a path that a server may normalize to the path. */
const SPELLINGS: ((address: string) => string)[] = [
  (address) => `${address}/`,
  (address) => `/${address}`,
  (address) => `${address}.rsc`,
  (address) => `${address}.segments/${MARK}.segment.rsc`,
  (address) => `${address}.json`,
  (address) => `/_next/data/${buildId}${address}.json`,
  (address) => `/_next/static/%2e%2e/..${address}`,
  (address) => `/${MARK}/..%2f..${address}`,
  (address) => `${address}/%ff`,
  (address) => `${address}%00`,
  (address) => `${address}/%0d%0a${MARK}:x`,
  (address) => `${address};${MARK}=1`,
  (address) => address.replaceAll('e', '%65'),
  (address) => address.toUpperCase(),
  (address) => address.replaceAll('/', '\\'),
  (address) => `http://${MARK}.example${address}`,
  (address) => `${address}/${'a'.repeat(3000)}`,
  () => `/%${MARK}`,
];

const QUERIES = [
  `?${MARK}=${MARK}&x=%ff%${MARK}`,
  `?_rsc=${MARK}&__flight__=1`,
  `?__clerk_handshake=${MARK}.${MARK}.${MARK}`,
  `?__clerk_redirect_url=https://${MARK}.example&__clerk_db_jwt=${MARK}`,
  `?__nextDefaultLocale=${MARK}&nxtPpath=${MARK}&__proto__[x]=y`,
];

const tree = (value: unknown) => encodeURIComponent(JSON.stringify(value));

/** Headers that Node.js, Next.js or the provider's SDK reads, each with ordinary and hostile values. */
export const HEADERS: Readonly<Record<string, readonly string[]>> = {
  RSC: ['1', MARK],
  'Next-Router-State-Tree': [
    `%7B"${MARK}"`,
    tree(null),
    tree(['', { children: ['__PAGE__', {}] }]),
    tree(['', { children: [['sign-in', MARK, 'oc', null], { children: ['__PAGE__', {}] }] }, null, null, 1]),
  ],
  'Next-Router-Prefetch': ['1', MARK],
  'Next-Router-Segment-Prefetch': ['/_tree', `/${MARK}`, '%'],
  'Next-Url': ['/account', `/${MARK}`, '//', '%'],
  'Next-Action': ['x', MARK, '7f'.repeat(21), '__proto__', ...ACTIONS],
  'X-Action-Forwarded': ['1', MARK],
  'X-Nextjs-Data': ['1', MARK],
  'X-Middleware-Subrequest': ['middleware', 'middleware:middleware:middleware:middleware:middleware'],
  'X-Middleware-Rewrite': [`/${MARK}`, '/users/v1/me'],
  'X-Middleware-Next': ['1'],
  'X-Middleware-Override-Headers': ['x-clerk-auth-status'],
  'X-Middleware-Request-X-Clerk-Auth-Status': ['signed-in'],
  'X-Middleware-Set-Cookie': [`a=${MARK}`],
  'X-Matched-Path': ['/users/v1/me', `/${MARK}`],
  'X-Invoke-Status': ['500'],
  'X-Prerender-Revalidate': [MARK],
  'X-Original-Url': ['/users/v1/me'],
  'X-Forwarded-Host': [`${MARK}.example`, 'a, b', '%'],
  'X-Forwarded-Proto': ['https', 'https,http', MARK],
  'X-HTTP-Method-Override': ['OPTIONS', MARK],
  'X-Clerk-Auth-Status': ['signed-in', MARK],
  'X-Clerk-Auth-Token': [MARK],
  'X-Clerk-Auth-Signature': [MARK],
  'X-Clerk-Request-Data': [MARK],
  'Clerk-Proxy-Url': [`https://${MARK}.example`],
  Authorization: [`Bearer ey${MARK}.${MARK}.${MARK}`, `Basic ${MARK}`, `Bearer ak_${MARK}`, 'Bearer'],
  Cookie: [
    `__session=ey${MARK}.${MARK}.${MARK}; __client_uat=1`,
    `__clerk_handshake=${MARK}; __clerk_db_jwt=${MARK}; __refresh_x=${MARK}`,
    `${MARK}; a=%ff; =; ;;`,
  ],
  'Svix-Signature': ['v1,AAAA v1a,BBBB', MARK],
  Origin: ['null', MARK, `https://${MARK}.example`, 'http://['],
  'Sec-Fetch-Site': ['cross-site', 'same-origin', MARK],
  'Sec-Fetch-Dest': ['document', MARK],
  'Content-Type': ['application/json', 'text/plain', `multipart/form-data; boundary=${MARK}`, MARK],
  Accept: ['text/html', 'text/x-component', MARK],
  Range: ['bytes=0-1', MARK],
  Purpose: ['prefetch'],
};
/** More headers, which change how Node.js reads a request. A request with a valid session may fail because of them. */
const CONNECTION_HEADERS = {
  Expect: ['100-continue', MARK],
  Upgrade: ['websocket', 'h2c', MARK],
  Host: ['localhost', `${MARK}.example`, 'a b', ''],
};

const BODIES = [
  '{}',
  '[',
  `{"identityProviderUserId":"${MARK}"}`,
  `["$F1","${MARK}"]`,
  `[{"then":"$1:${MARK}"}]`,
  `--${MARK}\r\nContent-Disposition: form-data; name="$ACTION_ID_${MARK}"\r\n\r\n\r\n--${MARK}--\r\n`,
  `--${MARK}\r\nContent-Disposition: form-data; name="$ACTION_REF_1"\r\n\r\n${MARK}\r\n--${MARK}--\r\n`,
  `\x1b[31m${MARK}\n\nfalse line\n`,
];
/** Ends of a request: headers that delimit the body, the empty line and the body. The last ones are invalid. */
const FRAMINGS = [
  ...Array.from({ length: 8 }, () => '\r\n'),
  ...BODIES.map((body) => `Content-Length: ${body.length}\r\n\r\n${body}`),
  ...BODIES.map(
    (body) => `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  ),
  `Content-Length: 100000\r\n\r\n${MARK}`,
  `Transfer-Encoding: chunked\r\n\r\nzz\r\n${MARK}`,
  `Transfer-Encoding: ${MARK}\r\n\r\n`,
  `Content-Length: 2600000\r\n\r\n${MARK.repeat(325_000)}`,
];

/** Generates at most `maxLength` headers with different names. */
export const hostileHeaders = (from: Readonly<Record<string, readonly string[]>>, maxLength: number) =>
  fc
    .uniqueArray(fc.constantFrom(...Object.keys(from)), { maxLength })
    .chain((names) =>
      fc.tuple(...names.map((name) => fc.tuple(fc.constant(name), fc.constantFrom(...(from[name] ?? []))))),
    );

/** Generates requests with hostile paths, headers and bodies. Many of them target features of Next.js. */
export const hostileRequest: fc.Arbitrary<HostileRequest> = fc
  .record({
    method: fc.constantFrom(...METHODS),
    address: fc.constantFrom(...ADDRESSES),
    spell: fc.option(fc.constantFrom(...SPELLINGS), { freq: 3 }),
    query: fc.option(fc.constantFrom(...QUERIES), { nil: '', freq: 3 }),
    headers: hostileHeaders({ ...HEADERS, ...CONNECTION_HEADERS }, 5),
    framing: fc.constantFrom(...FRAMINGS),
  })
  .map(({ method, address, spell, query, headers, framing }) => {
    const line = `${method} ${spell ? spell(address) : address}${query} HTTP/1.1`;
    const host = headers.some(([name]) => name === 'Host') ? '' : 'Host: localhost\r\n';
    const fields = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    return { line, bytes: `${line}\r\n${host}${fields}Connection: close\r\n${framing}` };
  });

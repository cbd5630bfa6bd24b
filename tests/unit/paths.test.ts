import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import {
  type AddressedRequest,
  apiRootOf,
  isApi,
  isProxied,
  rejectionForAddress,
  takesBody,
} from '#lib/routing/paths';

/** Returns the rejection of the request `GET /users/v1/me` with the given changes. */
const rejectionOf = (request: Partial<AddressedRequest>) =>
  rejectionForAddress({
    method: 'GET',
    pathname: '/users/v1/me',
    query: '',
    header: () => undefined,
    hasProxy: false,
    ...request,
  });

test.each<[Partial<AddressedRequest>, number | undefined]>([
  [{}, undefined],
  [{ query: 'a=b' }, undefined],
  [{ query: 'a&'.repeat(101) }, 400],
  [{ pathname: '/_next/data/users/v1/me' }, 404],
  [{ pathname: '/__clerk/v1/client' }, 404],
  [{ pathname: '/__clerk/v1/client', method: 'TRACE' }, 404],
  [{ pathname: '/__clerk/v1/client', method: 'POST', hasProxy: true }, undefined],
  [{ pathname: '/__clerk/v1/client', method: 'TRACE', hasProxy: true }, 405],
  [{ method: 'TRACE' }, 405],
])(
  'For the request GET /users/v1/me with the changes %j, rejectionForAddress() returns the status %s (undefined: no rejection)',
  (request, status) => {
    expect(rejectionOf(request)?.status).toBe(status);
  },
);

test('A rejection with 405 lists the allowed methods', () => {
  expect(rejectionOf({ pathname: '/openapi.json', method: 'POST' })?.headers).toEqual({ allow: 'GET, HEAD' });
  expect(rejectionOf({ pathname: '/account', method: 'POST' })?.headers).toEqual({
    allow: 'GET, HEAD, OPTIONS',
  });
});

/** Headers of a valid server action. */
const HEADERS: Readonly<Record<string, string>> = {
  'next-action': '7f'.repeat(20),
  'content-type': 'text/plain;charset=UTF-8',
  'content-length': '2',
  host: 'app.example',
};
/** Returns the rejection status of a server action with the given changes of its headers. */
const actionStatus = (headers: Record<string, string | undefined> = {}, pathname = '/account') => {
  const all: Readonly<Record<string, string | undefined>> = { ...HEADERS, ...headers };
  return rejectionOf({ pathname, method: 'POST', header: (name) => all[name] })?.status;
};

test.each<[Record<string, string | undefined>, number | undefined]>([
  [{}, undefined],
  [{ 'next-action': 'f'.repeat(64) }, undefined],
  [{ 'next-action': 'f'.repeat(39) }, 405],
  [{ 'next-action': 'f'.repeat(65) }, 405],
  [{ 'next-action': 'g'.repeat(40) }, 405],
  [{ 'content-type': 'text/plain' }, undefined],
  [{ 'content-type': 'text/plainx' }, 405],
  [{ 'content-type': 'xtext/plain' }, 405],
  [{ 'content-type': undefined }, 405],
  [{ 'content-type': 'multipart/form-data' }, undefined],
  [{ 'next-action': undefined, 'content-type': 'multipart/form-data; boundary=x' }, undefined],
  [{ 'next-action': undefined, 'content-type': 'multipart/form-data' }, 405],
  [{ 'next-action': undefined, 'content-type': 'x multipart/form-data; boundary=x' }, 405],
  [{ 'next-action': undefined }, 405],
  [{ 'content-length': undefined }, 405],
  [{ 'content-length': '1 ' }, 405],
  [{ 'content-length': 'x1' }, 405],
  [{ 'content-length': '1048576' }, undefined],
  [{ 'content-length': '1048577' }, 413],
  [{ 'sec-fetch-site': 'none' }, undefined],
  [{ 'sec-fetch-site': 'same-originx' }, 405],
  [{ 'sec-fetch-site': 'not-same-origin' }, 405],
  [{ origin: 'https://app.example' }, undefined],
  [{ origin: 'https://other.example' }, 405],
  [{ origin: 'https://other.example', 'x-forwarded-host': ' other.example , inner' }, undefined],
  [{ origin: 'not a URL' }, 405],
])(
  'A valid server action with the header changes %o gets the rejection status %s (undefined: no rejection)',
  (headers, status) => {
    expect(actionStatus(headers)).toBe(status);
  },
);

test("A POST request without the headers of a server action is accepted for an API route and for Clerk's proxied Frontend API", () => {
  const request = { method: 'POST', header: () => undefined, hasProxy: true };
  for (const pathname of ['/users/v1/me', '/__clerk/v1/client'])
    expect(rejectionOf({ ...request, pathname })).toBeUndefined();
});

test.each([
  ['/__clerk', true],
  ['/__clerk/v1', true],
  ['/__clerks', false],
  ['/x/__clerk', false],
])("isProxied() returns whether %s belongs to Clerk's proxied Frontend API: %s", (pathname, expected) => {
  expect(isProxied(pathname)).toBe(expected);
});

test.each([
  ['/users', '/users'],
  ['/users/alice@example.com', '/users'],
  ['/userss', '/'],
  ['/x/users', '/'],
  ['/openapi.json', '/openapi.json'],
  ['/openapi.jsonx', '/'],
  ['/x/openapi.json', '/'],
  ['/openapixjson', '/'],
])('The API root of the path %s is %s (a slash if the path is not part of the API)', (pathname, root) => {
  expect(apiRootOf(pathname)).toBe(root);
  expect(isApi(pathname)).toBe(root !== '/');
});

test.each([
  ['POST', '/users/v1', true],
  ['PUT', '/users/v1', true],
  ['PATCH', '/users/v1', true],
  ['DELETE', '/users/v1', true],
  ['GET', '/users/v1', false],
  ['HEAD', '/users/v1', false],
  ['OPTIONS', '/users/v1', false],
  ['XPOST', '/users/v1', false],
  ['POSTX', '/users/v1', false],
  ['POST', '/health/alive', false],
  ['POST', '/x/health/alive', true],
])('takesBody() of the request %s %s returns %s', (method, url, expected) => {
  expect(takesBody(Object.assign(new IncomingMessage(new Socket()), { method, url }))).toBe(expected);
});

test.each<[string, string, number | undefined]>([
  ['/_next/static/a.js', 'GET', undefined],
  ['/_next/static/', 'GET', 404],
  ['/_next/static/a.js', 'POST', 405],
  ['/x/_next/static/a.js', 'DELETE', 405],
  ['/openapi.json/x', 'GET', 404],
  ['/x/openapi.json/x', 'GET', undefined],
  ['/a.rsc', 'GET', 404],
  ['/a.rscx', 'GET', undefined],
  ['/arsc', 'GET', undefined],
  ['/a.segments', 'GET', 404],
  ['/a.segments/b', 'GET', 404],
  ['/a.segmentsx', 'GET', undefined],
  ['/.', 'GET', 404],
  ['/a/..', 'GET', 404],
  ['/a/./b', 'GET', 404],
  ['/a/.well-known', 'GET', undefined],
  ['/a/...', 'GET', undefined],
  ['/a..b', 'GET', undefined],
  ['/%2F', 'GET', 404],
  ['/%7e', 'GET', 404],
  ['/%5C', 'GET', 404],
  ['/%41', 'GET', 404],
  ['/%20%C3%A9', 'GET', undefined],
  ['/%', 'GET', 404],
  ['/a#b', 'GET', 404],
  ['/a?b', 'GET', 404],
  ['/a\u0000', 'GET', 404],
  ['/a//b', 'GET', 404],
  ['/a/', 'GET', undefined],
  ['x/a', 'GET', 404],
])(
  'A request to the path %j with the method %s gets the rejection status %s (undefined: no rejection)',
  (pathname, method, status) => {
    expect(rejectionOf({ pathname, method })?.status).toBe(status);
  },
);

test('A rejection with 400, 404, 405 or 413 has a message for the client, and the 405 lists the allowed methods', () => {
  expect(rejectionOf({ query: 'a&'.repeat(101) })).toEqual({ status: 400, message: 'Bad request' });
  expect(rejectionOf({ pathname: '//' })).toEqual({ status: 404, message: 'Not found' });
  expect(rejectionOf({ method: 'TRACE' })).toEqual({
    status: 405,
    message: 'Method not allowed',
    headers: { allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' },
  });
  const header = (name: string) => (name === 'content-length' ? '1048577' : HEADERS[name]);
  expect(rejectionOf({ pathname: '/account', method: 'POST', header })).toEqual({
    status: 413,
    message: 'Payload too large',
  });
});

import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { ServerRequest } from '#lib/server/rejection';
import { rejectionFor } from '#lib/server/request-filter';

// The request filter checks each request before Next.js receives it.
function request(url: string, headers: Record<string, string> = {}, method = 'GET'): ServerRequest {
  const message = new IncomingMessage(new Socket());
  return Object.assign(message, {
    url,
    method,
    httpVersion: '1.1',
    headers: { host: 'localhost', ...headers },
  });
}

const rejectionOf = (url: string) => rejectionFor(request(url));

test.each([
  ['/users/v1/me', 'GET', undefined],
  ['/users/v1/me?a=b', 'GET', undefined],
  ['/users/v1/me?a=b/', 'GET', undefined],
  ['/users/v1/me/', 'GET', 404],
  ['/users/v1/%6de', 'GET', 404],
  ['/_next/image', 'GET', 404],
  ['/openapi.json', 'GET', undefined],
  ['/openapi.json', 'POST', 405],
  ['/openapi%2ejson', 'GET', 404],
  ['/openapi.json/', 'GET', 404],
  ['/users/v1/me', 'TRACE', 405],
  ['/', 'DELETE', 405],
  ['*', 'OPTIONS', 400],
  ['http://other.example/users/v1/me', 'GET', 400],
])(
  'For the path %s and the method %s, the request filter returns the status %s (undefined: the request passes)',
  (url, method, status) => {
    expect(rejectionFor(request(url, {}, method))?.status).toBe(status);
  },
);

test.each([
  '/users/v1/me',
  '/webhooks/idp/v1/user-created',
  '/health/alive',
  '/',
  '/unknown',
  '/_next/image',
])(
  'A request for %s with more than 100 query parameters gets a 400, and empty parameters do not count',
  (path) => {
    const statusWith = (count: number) => rejectionOf(`${path}?${'a&'.repeat(count)}`)?.status;
    expect(statusWith(100)).not.toBe(400);
    expect(statusWith(101)).toBe(400);
    expect(rejectionOf(`${path}?${'&'.repeat(1_000)}`)?.status).not.toBe(400);
    expect(rejectionOf(`${path}?&${'a&'.repeat(100)}`)?.status).not.toBe(400);
    expect(rejectionOf(`${path}${'&a'.repeat(101)}`)?.status).not.toBe(400);
  },
);

test.each([
  [{ 'content-length': '2' }, undefined],
  [{ 'content-length': '1048576' }, undefined],
  [{ 'content-length': '1048577' }, 413],
  [{ 'content-length': '2', 'content-type': 'multipart/form-data; boundary=x' }, undefined],
  [{ 'content-length': '2', 'content-type': 'application/json' }, 405],
  [{ 'content-length': '2', origin: 'http://localhost' }, undefined],
  [
    { 'content-length': '2', origin: 'https://app.example', 'x-forwarded-host': 'app.example, inner' },
    undefined,
  ],
  [{ 'content-length': '2', origin: 'https://evil.example' }, 405],
  [{ 'content-length': '2', origin: 'null' }, 405],
  [{ 'content-length': '2', 'sec-fetch-site': 'same-origin' }, undefined],
  [{ 'content-length': '2', 'sec-fetch-site': 'same-site' }, 405],
  [{ 'content-length': '2', 'sec-fetch-site': 'cross-site' }, 405],
  [{ 'transfer-encoding': 'chunked' }, 405],
  [{ 'content-length': '2', 'next-action': 'x' }, 405],
])(
  'A POST request to a page passes only if it is a server action of at most 1 MiB that does not come from another origin: headers %j, status %s',
  (headers, status) => {
    const action = { 'next-action': '7f'.repeat(21), 'content-type': 'text/plain', ...headers };
    const rejection = rejectionFor(request('/sign-in', action, 'POST'));
    expect(rejection?.status).toBe(status);
    if (status === 405) expect(rejection?.headers).toEqual({ allow: 'GET, HEAD, OPTIONS' });
  },
);

test('A request without a Host header is rejected unless it uses HTTP/1.0', () => {
  const without = request('/users/v1/me');
  delete without.headers.host;
  expect(rejectionFor(without)?.status).toBe(400);
  without.httpVersion = '1.0';
  expect(rejectionFor(without)).toBeUndefined();
});

test('The request filter removes Next.js-internal headers from an API request, but not from a page request', () => {
  const sent = {
    rsc: '1',
    'next-action': 'x',
    'x-nextjs-data': '1',
    'x-middleware-prefetch': '1',
    accept: 'a',
  };
  const apiRequest = request('/users/v1/me', sent);
  rejectionFor(apiRequest);
  expect(apiRequest.headers).toEqual({ host: 'localhost', accept: 'a' });
  const pageRequest = request('/sign-in', sent);
  rejectionFor(pageRequest);
  expect(pageRequest.headers).toMatchObject(sent);
});

/**
 * Returns the rejection status of a page request with this router state. A router state describes the current page. The
 * browser code of Next.js sends it in the header `next-router-state-tree`.
 */
const stateStatus = (text: string) => rejectionFor(request('/', { 'next-router-state-tree': text }))?.status;

test.each([
  [['', {}], undefined],
  ['x', 400],
  [Array.from({ length: 70 }).reduce((inner) => ['a', { b: inner }], ['', {}]), 400],
])(
  'A page request passes with a valid router state in its headers, and gets a 400 with an invalid one: case %#',
  (state, status) => {
    expect(stateStatus(encodeURIComponent(JSON.stringify(state)))).toBe(status);
  },
);

test('The request filter limits the length of a router state to 8,000 characters, but not the number of branches', () => {
  const wide = (length: number) => JSON.stringify(['x'.repeat(length - '["",{}]'.length), {}]);
  expect(stateStatus(wide(8_000))).toBeUndefined();
  expect(stateStatus(wide(8_001))).toBe(400);
  const shallow = JSON.stringify([
    '',
    Object.fromEntries(Array.from({ length: 80 }, (_, index) => [`k${index}`, ['', {}]])),
  ]);
  expect(stateStatus(shallow)).toBeUndefined();
});

test('A router state with a depth of 64 passes, and a deeper router state is rejected', () => {
  // `['', {}]` has the depth 2. Each level adds an array and an object, so `nested(31)` has the depth 64.
  const nested = (levels: number): unknown => (levels === 0 ? ['', {}] : ['a', { b: nested(levels - 1) }]);
  expect(stateStatus(JSON.stringify(nested(31)))).toBeUndefined();
  expect(stateStatus(JSON.stringify(nested(32)))).toBe(400);
});

test('A router state that is not valid percent-encoding is rejected', () => {
  expect(stateStatus('%E0%A4%A')).toBe(400);
});

test('A page request with more than 100 headers gets a 431, and an API request with 101 headers passes', () => {
  const withHeaders = (url: string, count: number) =>
    Object.assign(request(url), { rawHeaders: Array.from({ length: 2 * count }, () => 'a') });
  expect(rejectionFor(withHeaders('/', 100))).toBeUndefined();
  expect(rejectionFor(withHeaders('/', 101))).toEqual({
    status: 431,
    message: 'Request header fields too large',
  });
  expect(rejectionFor(withHeaders('/users/v1/me', 101))).toBeUndefined();
});

test.each(['xrsc', 'rscx', 'x-next-action', 'my-x-nextjs-data', 'my-x-middleware-a', 'my-x-action-a'])(
  'The request filter does not remove the header %s from an API request, because the header only resembles a header of Next.js',
  (name) => {
    const given = request('/users/v1/me', { [name]: '1' });
    rejectionFor(given);
    expect(given.headers).toHaveProperty(name, '1');
  },
);

test.each(['rsc', 'next-url', 'x-nextjs-data', 'x-middleware-a', 'x-action-revalidated'])(
  'The request filter removes the header %s from an API request',
  (name) => {
    const given = request('/users/v1/me', { [name]: '1' });
    rejectionFor(given);
    expect(given.headers).not.toHaveProperty(name);
  },
);

test('The request filter passes a request for /__clerk, because the middleware decides whether to forward it to Clerk', () => {
  expect(rejectionFor(request('/__clerk/v1/client', {}, 'POST'))).toBeUndefined();
});

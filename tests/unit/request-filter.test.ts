import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { rejectionFor } from '#lib/server/request-filter';

function request(url: string, headers: Record<string, string> = {}, method = 'GET'): IncomingMessage {
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
])('%s %s: %s', (url, method, status) => {
  expect(rejectionFor(request(url, {}, method))?.status).toBe(status);
});

test.each([
  '/users/v1/me',
  '/webhooks/idp/v1/user-created',
  '/health/alive',
  '/',
  '/unknown',
  '/_next/image',
])('More than 100 query parameters are a 400 on %s', (path) => {
  const statusWith = (count: number) => rejectionOf(`${path}?${'a&'.repeat(count)}`)?.status;
  expect(statusWith(100)).not.toBe(400);
  expect(statusWith(101)).toBe(400);
  expect(rejectionOf(`${path}?${'&'.repeat(1_000)}`)?.status).not.toBe(400);
});

test.each([
  [{ 'content-length': '2' }, undefined],
  [{ 'content-length': '3' }, 405],
  [{ 'transfer-encoding': 'chunked' }, 405],
  [{ 'content-length': '2', 'next-action': 'x' }, 405],
])(
  'A POST request to a page is a 405 unless its headers are those of the SDK action: %j',
  (headers, status) => {
    const action = { 'next-action': '7f'.repeat(21), 'content-type': 'text/plain', ...headers };
    const rejection = rejectionFor(request('/sign-in', action, 'POST'));
    expect(rejection?.status).toBe(status);
    if (status === 405) expect(rejection?.headers).toEqual({ allow: 'GET, HEAD, OPTIONS' });
  },
);

test('a request without Host is refused, unless it is of the oldest kind', () => {
  const without = request('/users/v1/me');
  delete without.headers.host;
  expect(rejectionFor(without)?.status).toBe(400);
  without.httpVersion = '1.0';
  expect(rejectionFor(without)).toBeUndefined();
});

test('of an API request, what only the framework would read is dropped; a page keeps it', () => {
  const sent = {
    rsc: '1',
    'next-action': 'x',
    'x-nextjs-data': '1',
    'x-middleware-prefetch': '1',
    accept: 'a',
  };
  const ofApi = request('/users/v1/me', sent);
  rejectionFor(ofApi);
  expect(ofApi.headers).toEqual({ host: 'localhost', accept: 'a' });
  const ofPage = request('/sign-in', sent);
  rejectionFor(ofPage);
  expect(ofPage.headers).toMatchObject(sent);
});

test.each([
  [['', {}], undefined],
  ['x', 400],
  [Array.from({ length: 70 }).reduce((inner) => ['a', { b: inner }], ['', {}]), 400],
])('a page’s state that the framework could not read is refused: %#', (state, status) => {
  const headers = { 'next-router-state-tree': encodeURIComponent(JSON.stringify(state)) };
  expect(rejectionFor(request('/', headers))?.status).toBe(status);
});

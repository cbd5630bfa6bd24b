import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { refusal } from '#lib/admission';

function request(url: string, headers: Record<string, string> = {}, method = 'GET'): IncomingMessage {
  const message = new IncomingMessage(new Socket());
  return Object.assign(message, {
    url,
    method,
    httpVersion: '1.1',
    headers: { host: 'localhost', ...headers },
  });
}

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
])('A request for %s with the method %s gets the rejection status %s', (url, method, status) => {
  expect(refusal(request(url, {}, method))?.status).toBe(status);
});

test('A request without a Host header is rejected unless it uses HTTP/1.0', () => {
  const without = request('/users/v1/me');
  delete without.headers.host;
  expect(refusal(without)?.status).toBe(400);
  without.httpVersion = '1.0';
  expect(refusal(without)).toBeUndefined();
});

test('An API request loses its Next.js-internal headers, and a page request keeps them', () => {
  const sent = {
    rsc: '1',
    'next-action': 'x',
    'x-nextjs-data': '1',
    'x-middleware-prefetch': '1',
    accept: 'a',
  };
  const apiRequest = request('/users/v1/me', sent);
  refusal(apiRequest);
  expect(apiRequest.headers).toEqual({ host: 'localhost', accept: 'a' });
  const pageRequest = request('/sign-in', sent);
  refusal(pageRequest);
  expect(pageRequest.headers).toMatchObject(sent);
});

test.each([
  [['', {}], undefined],
  ['x', 400],
  [Array.from({ length: 70 }).reduce((inner) => ['a', { b: inner }], ['', {}]), 400],
])('A page request with a router state that Next.js cannot parse is rejected: %#', (state, status) => {
  const headers = { 'next-router-state-tree': encodeURIComponent(JSON.stringify(state)) };
  expect(refusal(request('/', headers))?.status).toBe(status);
});

import { expect, test, vi } from 'vitest';
import { log } from '#lib/base/log';
import { rejectedStatus } from '#lib/http/address';
import { rejection } from '#lib/http/rejection';

test('The first file of app/ that matches a path decides whether it is an API path, and without one its form', async () => {
  const files = [
    'route /projects/v1/list',
    'page /projects/([^/]+)/([^/]+)',
    'page /p/([^/]+)',
    'route /plain',
    'page /docs(?:/.+)?',
    'route /([^/]+)/v1/notes',
    'route /files/(.+)',
    'route /_x',
    'route /café',
    'page ',
  ];
  vi.stubEnv('APP_FILES', files.join('\n'));
  vi.resetModules();
  const address = await import('#lib/http/address');
  vi.unstubAllEnvs();
  const api = [
    '/projects/v1/list',
    '/plain',
    '/plain/',
    '/acme/v1/notes',
    '/unknown/v1',
    '/health/x',
    '/files/a%0Ab',
    '/_x',
    '/caf%C3%A9',
    '/users/v1/me',
    '/health/ready',
    '/openapi.json',
    '/openapi.json/',
    '/.well-known/x',
  ];
  const pages = [
    '/projects/v1/edit',
    '/p/v1',
    '/p/v1/',
    '/docs',
    '/docs/v1/notes',
    '/docs/v1/%C3%BC',
    '/docs/v1/%0Ax',
    '/',
    '/unknown',
    '/notes/version1',
    '/healthy',
    '/x/openapi.json',
    '/x/health/ready',
    '/__clerk/v1/client',
  ];
  expect([...api, ...pages].filter(address.isApi)).toEqual(api);
  const line = { method: 'GET', query: '', contentLength: '' };
  const statuses = ['/_x', '/_y', '/%5Fx'].map((pathname) => address.rejectedStatus({ ...line, pathname }));
  expect(statuses).toEqual([undefined, 404, 404]);
});

const statusOf = (pathname: string, { method = 'GET', query = '', contentLength = '' } = {}) =>
  rejectedStatus({ method, pathname, query, contentLength });

test.each([
  '/users/v1/me/',
  '/users/v1/me.rsc',
  '/users/v1/me.segments/_tree.segment.rsc',
  '/_next/data/x/users/v1/me.json',
  '/_next/image',
  '/_error',
  '/x/%2e%2e/users/v1/me',
  '/_next/static/%2e%2e/%2e%2e/users/v1/me',
  '//users/v1/me',
  '/users\\v1\\me',
  '/%75sers/v1/me',
  '/%5a',
  '/users%2fv1/me',
  '/users%5cv1/me',
  '/users/v1/%ff',
  'users/v1/me',
  '*',
  'http://localhost/users/v1/me',
])('Another spelling of the path of a route, or an internal path of Next.js, is a 404: %s', (pathname) => {
  expect(statusOf(pathname)).toBe(404);
});

test.each([
  '/',
  '/users/v1/me',
  '/notes/v1/ada%40example.com',
  '/notes/v1/%C3%BC',
  '/sign-in/',
  '/a.rsc/b',
  '/a/_b',
  '/_next/static/x',
  '/__clerk/v1/client',
])('The path of a route, a page or a file is handled: %s', (pathname) => {
  expect(statusOf(pathname)).toBeUndefined();
});

test('More than 100 query parameters are a 400', () => {
  expect(statusOf('/', { query: 'ab&&'.repeat(100) })).toBeUndefined();
  expect(statusOf('/', { query: `${'ab&'.repeat(100)}ab` })).toBe(400);
});

test('TRACE is a 405. A POST to a page without a length is a 411, and a declared body above 1 MiB a 413', () => {
  expect(statusOf('/users/v1/me', { method: 'TRACE' })).toBe(405);
  expect(statusOf('/account', { method: 'POST' })).toBe(411);
  expect(statusOf('/auth/v1/register', { method: 'POST' })).toBeUndefined();
  expect(statusOf('/account', { method: 'POST', contentLength: String(1024 * 1024) })).toBeUndefined();
  expect(statusOf('/auth/v1/register', { method: 'POST', contentLength: String(1024 * 1024 + 1) })).toBe(413);
});

test('A rejected request is logged without its address, and gets a response in JSON with its request id', () => {
  const info = vi.spyOn(log, 'info').mockReturnValue();
  expect(rejection(404, 'req-1')).toEqual({
    headers: {
      'content-type': 'application/json',
      'content-length': '23',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-request-id': 'req-1',
    },
    body: '{"message":"Not found"}',
  });
  const fields = { requestId: 'req-1', route: 'none', status: 404, ms: 0 };
  expect(info).toHaveBeenCalledExactlyOnceWith(fields, 'request');
  info.mockRestore();
});

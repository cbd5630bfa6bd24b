import { expect, test, vi } from 'vitest';
import { allowedMethods, apiRootOf, isApi, isPage } from '#lib/routing/paths';

vi.mock('#lib/routing/routes', () => ({
  API_ROOTS: ['projects', 'users'],
  API_ROUTES: ['/projects/v1', '/projects/v1/projects/[id]', '/users/v1/me'],
  PAGES: ['/', '/projects', '/projects/[id]', '/files/[...path]', '/sign-in/[[...sign-in]]', '/a.b'],
}));

test.each([
  '/',
  '/projects',
  '/projects/',
  '/projects/42',
  '/projects/%C3%A9',
  '/files/a',
  '/files/a/b',
  '/sign-in',
  '/sign-in/factor-one/x',
  '/a.b',
])('The path %s is a page', (path) => {
  expect(isPage(path)).toBe(true);
  expect(isApi(path)).toBe(false);
  expect(allowedMethods(path)).toEqual(['GET', 'HEAD', 'POST', 'OPTIONS']);
});

test.each([
  '/projects/v1',
  '/projects/v1/projects/42',
  '/projects/v2/unknown',
  '/users',
  '/users/v1/unknown',
])('The path %s belongs to the API even if pages have the same first segment', (path) => {
  expect(isApi(path)).toBe(true);
  expect(isPage(path)).toBe(false);
  expect(allowedMethods(path)).toContain('DELETE');
  expect(apiRootOf(path)).toBe(`/${path.split('/')[1]}`);
});

test.each(['/files', '/aXb', '/accounts', '/project'])(
  'The path %s is neither a page nor an API path',
  (path) => {
    expect([isPage(path), isApi(path)]).toEqual([false, false]);
    expect(allowedMethods(path)).toEqual(['GET', 'HEAD', 'POST']);
  },
);

test('An API path with a trailing slash has no allowed method', () => {
  for (const path of ['/users/', '/users/v1/me/', '/projects/v2/x/'])
    expect(allowedMethods(path)).toEqual([]);
});

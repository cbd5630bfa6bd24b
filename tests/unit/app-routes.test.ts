import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkRoutes, writeRoutes } from '#lib/routing/app-routes';

const project = process.cwd();
/** Temporary project folder of the current test. */
let folder = '';

/** Creates an empty file and its folder. */
const add = (file: string) => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, '');
};
/** Returns the entries of the written list of routes. */
const written = () =>
  [...readFileSync('lib/routing/routes.ts', 'utf8').matchAll(/'(.*)'/g)].map(([, entry]) => entry);

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'app-routes-test-'));
  process.chdir(folder);
  add('lib/routing/routes.ts');
  add('app/page.tsx');
});
afterEach(() => {
  process.chdir(project);
  rmSync(folder, { recursive: true, force: true });
});

test('The list of routes in the repository matches the files in app/', () => {
  process.chdir(project);
  expect(checkRoutes).not.toThrow();
});

// Next.js omits a route group, such as `(marketing)`, and a slot, such as `@side`, from the path of a page. It serves no page in
// a private folder (`_parts`).
test('writeRoutes() lists the pages, the API routes and the first path segment of each API route, but not openapi.json and api-not-found', () => {
  for (const file of [
    'app/(marketing)/pricing/page.tsx',
    'app/projects/[id]/page.tsx',
    'app/projects/@side/page.tsx',
    'app/projects/_parts/page.tsx',
    'app/projects/layout.tsx',
    'app/projects/v1/projects/route.ts',
    'app/openapi.json/route.ts',
    'app/api-not-found/[[...path]]/route.ts',
  ]) {
    add(file);
  }
  writeRoutes();
  expect(written()).toEqual([
    'projects',
    '/projects/v1/projects',
    '/',
    '/pricing',
    '/projects',
    '/projects/[id]',
  ]);
  expect(checkRoutes).not.toThrow();
});

test('checkRoutes() throws if a route is missing from the list, or if a listed route does not exist', () => {
  writeRoutes();
  add('app/new/page.tsx');
  expect(checkRoutes).toThrow(
    'lib/routing/routes.ts does not match the files in app/. Run `npm run routes`.',
  );
  writeRoutes();
  rmSync('app/new', { recursive: true });
  expect(checkRoutes).toThrow('Run `npm run routes`');
});

test('writeRoutes() throws an error for an intercepting route of Next.js, because the middleware cannot recognize such a route', () => {
  add('app/feed/(..)photo/[id]/page.tsx');
  expect(writeRoutes).toThrow('intercepting routes are not supported');
});

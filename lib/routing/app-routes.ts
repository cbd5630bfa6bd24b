import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROUTES_FILE = 'lib/routing/routes.ts';

/** Routes that `ROUTES_FILE` does not list: the route for unknown API paths, and the OpenAPI document. */
const NOT_LISTED = /^\/(?:api-not-found\/|openapi\.json$)/;
/** Folders that Next.js omits from the URL path: groups `(name)` and slots `@name`. */
const NOT_IN_PATH = /^(?:\([^.)]+\)|@.+)$/;

/**
 * Returns the path that a file in `app` serves, such as `/projects/[id]`. Returns undefined if a folder is private (`_name`).
 */
function routeOf(file: string): string | undefined {
  const segments = path.dirname(file).split(path.sep);
  if (segments.some((segment) => segment.startsWith('_'))) return undefined;
  const intercepting = segments.find((segment) => segment.startsWith('(.'));
  if (intercepting) throw new Error(`app/${file}: intercepting routes are not supported`);
  return `/${segments.filter((segment) => segment !== '.' && !NOT_IN_PATH.test(segment)).join('/')}`;
}

/** Returns the sorted paths of the pages or of the API routes in `app`, without the routes in `NOT_LISTED`. */
function routesOf(kind: 'page' | 'route'): string[] {
  const name = new RegExp(`^${kind}\\.(?:tsx?|jsx?)$`);
  const routes = readdirSync('app', { recursive: true, encoding: 'utf8' })
    .filter((file) => name.test(path.basename(file)))
    .flatMap((file) => routeOf(file) ?? [])
    .filter((route) => !NOT_LISTED.test(route));
  return [...new Set(routes)].toSorted();
}

const listOf = (name: string, routes: readonly string[]) =>
  `export const ${name} = [
${routes.map((route) => `  '${route}',\n`).join('')}] as const;
`;

/** Returns the content that `ROUTES_FILE` must have. It lists the pages and the API routes that `routesOf` returns. */
function generateRoutes(): string {
  const routes = routesOf('route');
  return `// biome-ignore-all format: one entry per line, so that additions do not conflict
/* Written by \`npm run routes\` and \`npm run dev\` from the files in app/. */

/** First segments of the API routes. Paths below them return JSON, unless the path is a page. */
${listOf('API_ROOTS', [...new Set(routes.map((route) => route.split('/')[1] ?? ''))])}
/** Paths of the API routes. */
${listOf('API_ROUTES', routes)}
/** Paths of the pages. */
${listOf('PAGES', routesOf('page'))}`;
}

/** Writes `ROUTES_FILE` if its content does not match the files in `app`. */
export function writeRoutes(): void {
  const routes = generateRoutes();
  if (readFileSync(ROUTES_FILE, 'utf8') !== routes) writeFileSync(ROUTES_FILE, routes);
}

/** Throws an error if the content of `ROUTES_FILE` does not match the files in `app`. */
export function checkRoutes(): void {
  if (readFileSync(ROUTES_FILE, 'utf8') === generateRoutes()) return;
  throw new Error(`${ROUTES_FILE} does not match the files in app/. Run \`npm run routes\`.`);
}

import { API_ROOTS, API_ROUTES, PAGES } from './routes';

/** Returns the source of a regular expression for the path of a folder in `app`, for example `/projects/[id]`. */
const patternOf = (route: string): string =>
  route
    .replaceAll('.', '\\.')
    .replace(/\/\[\[[^\]]+\]\]/g, '(?:/.+)?')
    .replace(/\[\\\.[^\]]+\]/g, '.+')
    .replace(/\[[^\]]+\]/g, '[^/]+');
const anyOf = (routes: readonly string[]): string => `(?:${routes.map(patternOf).join('|')})`;

const API = new RegExp(`^(/(?:${API_ROOTS.join('|')}))(?:/|$)`);
const API_ROUTE = new RegExp(`^${anyOf(API_ROUTES)}$`);
const PAGE = new RegExp(`^${anyOf(PAGES)}/?$`);
/** The OpenAPI document. It is a file, so there are no paths below it. */
const DOCUMENT = /^\/openapi\.json$/;

/**
 * Returns true if the path is a page, where the identity provider may redirect a browser to renew its session. The
 * middleware handles a path that is neither a page nor below an API root like an API path, so a new path is protected by
 * default. A path that matches both a page and an API route is the API route.
 */
export const isPage = (pathname: string): boolean => PAGE.test(pathname) && !API_ROUTE.test(pathname);

/** Returns true if every response at this path is JSON. A page may have the first segment of API routes. */
export const isApi = (pathname: string): boolean =>
  DOCUMENT.test(pathname) || (API.test(pathname) && !isPage(pathname));

/** Returns the API root of a path, or `/`. Logs contain only the root because a segment may be personal data. */
export const apiRootOf = (pathname: string): string =>
  DOCUMENT.test(pathname) ? pathname : (API.exec(pathname)?.[1] ?? '/');

const PROXY = /^\/__clerk(?:\/|$)/;

/** Returns true for paths that the local stack proxies to the identity provider's Frontend API. */
export const isProxied = (pathname: string): boolean => PROXY.test(pathname);

/** Unreserved characters (RFC 3986, 2.3), which have the same meaning with and without percent-encoding, and slashes. */
const NEEDLESSLY_ENCODED = /[A-Za-z0-9\-._~/\\]/;

/** Returns true if the path has another spelling without percent-encoding. */
const isNeedlesslyEncoded = (pathname: string): boolean =>
  (pathname.match(/%[\da-f]{2}/gi) ?? []).some((octet) =>
    NEEDLESSLY_ENCODED.test(String.fromCharCode(Number.parseInt(octet.slice(1), 16))),
  );

/** Starts with one slash, and has no empty segment, backslash, fragment or control character. */
const SEGMENTS = /^\/(?:[^/\\?#\p{Cc}]+\/)*[^/\\?#\p{Cc}]*$/u;
/** Aliases of a route in Next.js, and the segments `.` and `..`. */
const ALIAS = /\.rsc$|\.segments(?:\/|$)|\/\.{1,2}(?:\/|$)/;

/** Returns true if the path has the canonical spelling. No other spelling reaches a route. */
function isCanonical(pathname: string): boolean {
  try {
    decodeURIComponent(pathname);
  } catch {
    return false;
  }
  return SEGMENTS.test(pathname) && !isNeedlesslyEncoded(pathname) && !ALIAS.test(pathname);
}

const READ = ['GET', 'HEAD'] as const;
const ALL = [...READ, 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** A server action is a POST request to the path of the page that the browser shows, also to that of an unknown page. */
const PAGE_METHODS = [...READ, 'POST', 'OPTIONS'] as const;

/** Methods by path. The first match counts. A path without a match is not served, for example an internal path of Next.js. */
const SERVED: readonly { readonly at: RegExp; readonly methods: readonly string[] }[] = [
  // An API route has one path: the same path with a trailing slash is not served.
  { at: new RegExp(`${API.source}.*/$`), methods: [] },
  { at: API, methods: ALL },
  { at: DOCUMENT, methods: READ },
  { at: /^\/openapi\.json\//, methods: [] },
  { at: /^\/_next\/static\/./, methods: READ },
  { at: PROXY, methods: ALL },
  { at: /^\/[^_]/, methods: [...READ, 'POST'] },
];

const METHODS_WITH_BODY: readonly string[] = ['POST', 'PUT', 'PATCH', 'DELETE'];
const HEALTH = /^\/health\//;

/** Returns true if a request to this path may have a body. */
export const takesBody = (method: string, pathname: string): boolean =>
  METHODS_WITH_BODY.includes(method) && !HEALTH.test(pathname);

/** Returns the methods that are served at this path. The list is empty for a path that is not served. */
export function allowedMethods(pathname: string): readonly string[] {
  if (!isCanonical(pathname)) return [];
  return isPage(pathname) ? PAGE_METHODS : (SERVED.find(({ at }) => at.test(pathname))?.methods ?? []);
}

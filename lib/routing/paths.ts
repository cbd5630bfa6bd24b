import { API_ROOTS, PAGES } from './roots';

const API = new RegExp(`^(/(?:${API_ROOTS.join('|')}))(?:/|$)`);
/** The OpenAPI document. It is a file, so there are no paths below it. */
const DOCUMENT = /^\/openapi\.json$/;

/** Returns true if every response at this path is JSON. */
export const isApi = (pathname: string): boolean => DOCUMENT.test(pathname) || API.test(pathname);

/** Returns the API root of a path, or `/`. Logs contain only the root because a segment may be personal data. */
export const apiRootOf = (pathname: string): string =>
  DOCUMENT.test(pathname) ? pathname : (API.exec(pathname)?.[1] ?? '/');

const PAGE = new RegExp(`^/(?:$|(?:sign-in|sign-up)(?:/|$)|(?:${PAGES.join('|')})/?$)`);

/**
 * Returns true if the path is a page, where the identity provider may redirect a browser to renew its session. The
 * middleware handles a path that is neither a page nor below an API root like an API path, so a new path is protected by
 * default.
 */
export const isPage = (pathname: string): boolean => PAGE.test(pathname);

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

/** Methods by path. The first match counts. A path without a match is not served, for example an internal path of Next.js. */
const SERVED: readonly { readonly at: RegExp; readonly methods: readonly string[] }[] = [
  // An API route has one path: the same path with a trailing slash is not served.
  { at: new RegExp(`${API.source}.*/$`), methods: [] },
  { at: API, methods: ALL },
  { at: DOCUMENT, methods: READ },
  { at: /^\/openapi\.json\//, methods: [] },
  { at: /^\/_next\/static\/./, methods: READ },
  { at: PROXY, methods: ALL },
  // POST is for the SDK's only server action, which may also come from the page of an unknown path.
  { at: PAGE, methods: [...READ, 'POST', 'OPTIONS'] },
  { at: /^\/[^_]/, methods: [...READ, 'POST'] },
];

const METHODS_WITH_BODY: readonly string[] = ['POST', 'PUT', 'PATCH', 'DELETE'];
const HEALTH = /^\/health\//;

/** Returns true if a request to this path may have a body. */
export const takesBody = (method: string, pathname: string): boolean =>
  METHODS_WITH_BODY.includes(method) && !HEALTH.test(pathname);

/** Returns the methods that are served at this path. The list is empty for a path that is not served. */
export function allowedMethods(pathname: string): readonly string[] {
  return isCanonical(pathname) ? (SERVED.find(({ at }) => at.test(pathname))?.methods ?? []) : [];
}

import { API_ROOTS, PAGES } from './roots';

const API = new RegExp(`^(/(?:${API_ROOTS.join('|')}))(?:/|$)`);
/** The API's description, a file among folders: nothing lies below it. */
const DOCUMENT = /^\/openapi\.json$/;

/** True if every answer at this path is JSON. */
export const isApi = (pathname: string): boolean => DOCUMENT.test(pathname) || API.test(pathname);

/** The root of the API that a path lies below, else `/`: what may be told of a path, for a segment may be personal. */
export const apiRootOf = (pathname: string): string =>
  DOCUMENT.test(pathname) ? pathname : (API.exec(pathname)?.[1] ?? '/');

/** Where a person's browser navigates to. */
const PAGE = new RegExp(`^/(?:$|(?:sign-in|sign-up)(?:/|$)|(?:${PAGES.join('|')})/?$)`);

/**
 * True if the path is a page, where the identity provider may redirect a browser to renew its session. A path that is
 * neither a page nor below an API root is shielded as one of the API, so a new one is shielded at once.
 */
export const isPage = (pathname: string): boolean => PAGE.test(pathname);

/** The same-origin way to the identity provider's Frontend API, where the service runs a proxy: the local stack. */
const PROXY = /^\/__clerk(?:\/|$)/;

/** True if the path is the identity provider's own traffic. */
export const isProxied = (pathname: string): boolean => PROXY.test(pathname);

/** "Unreserved characters" (RFC 3986, 2.3), which need no percent-encoding and mean the same with it; and slashes of either kind. */
const OTHERWISE_SPELLED = /[A-Za-z0-9\-._~/\\]/;

/** True if a character is percent-encoded that reads as itself: another spelling of the same address. */
const isOddlyEncoded = (pathname: string): boolean =>
  (pathname.match(/%[\da-f]{2}/gi) ?? []).some((octet) =>
    OTHERWISE_SPELLED.test(String.fromCharCode(Number.parseInt(octet.slice(1), 16))),
  );

/** Begins with one slash, and has no empty segment, backslash, fragment or control character. */
const SEGMENTS = /^\/(?:[^/\\?#\p{Cc}]+\/)*[^/\\?#\p{Cc}]*$/u;
/** What the framework takes for another address of a route, and a segment that leads elsewhere. */
const ALIAS = /\.rsc$|\.segments(?:\/|$)|\/\.{1,2}(?:\/|$)/;

/** True if the path is spelled as a route's address is; then no other spelling of it reaches that route. */
function isPlain(pathname: string): boolean {
  try {
    decodeURIComponent(pathname);
  } catch {
    return false;
  }
  return SEGMENTS.test(pathname) && !isOddlyEncoded(pathname) && !ALIAS.test(pathname);
}

const READ = ['GET', 'HEAD'] as const;
const ALL = [...READ, 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** What is served where, first match first. What no line names, the framework's own addresses among it, is no address. */
const SERVED: readonly { readonly at: RegExp; readonly methods: readonly string[] }[] = [
  // A route of the API has one address: not one with a slash too many.
  { at: new RegExp(`${API.source}.*/$`), methods: [] },
  { at: API, methods: ALL },
  { at: DOCUMENT, methods: READ },
  { at: /^\/openapi\.json\//, methods: [] },
  { at: /^\/_next\/static\/./, methods: READ },
  { at: PROXY, methods: ALL },
  // POST: the one server action of the identity provider's SDK, also from the page of an address that names nothing.
  { at: PAGE, methods: [...READ, 'POST', 'OPTIONS'] },
  { at: /^\/[^_]/, methods: [...READ, 'POST'] },
];

const MAX_PARAMETERS = 100;

/**
 * True if a query string has more than 100 parameters. Next.js reads every parameter of a request once for each parameter
 * (`adapter` in next/dist/server/web/adapter.js), so their number has to be limited before it sees them.
 */
export const hasTooManyParameters = (query: string): boolean =>
  query.split('&').filter(Boolean).length > MAX_PARAMETERS;

const METHODS_WITH_BODY: readonly string[] = ['POST', 'PUT', 'PATCH', 'DELETE'];
const HEALTH = /^\/health\//;

/** True if a request that is served may have a body. At a page, POST is served for the SDK's server action alone. */
export const takesBody = (method: string, pathname: string): boolean =>
  METHODS_WITH_BODY.includes(method) && !HEALTH.test(pathname);

/** The methods that are served at this path; none: the path names nothing. */
export function allowedMethods(pathname: string): readonly string[] {
  return isPlain(pathname) ? (SERVED.find(({ at }) => at.test(pathname))?.methods ?? []) : [];
}

import type { IncomingMessage } from 'node:http';
import { API_ROOTS, API_ROUTES, PAGES } from './routes';
import { checkActionHeaders } from './server-action';

/**
 * Returns the source of a regular expression for the path of a folder in `app`. `[id]` matches one segment, `[...rest]` one or
 * more segments, and `[[...rest]]` any number of segments.
 */
const patternOf = (route: string): string =>
  route
    .replaceAll('.', '\\.')
    .replace(/\/\[\[[^\]]+\]\]/g, '(?:/.+)?')
    .replace(/\[\\\.[^\]]+\]/g, '.+')
    .replace(/\[[^\]]+\]/g, '[^/]+');
const anyOf = (routes: readonly string[]): string => `(?:${routes.map(patternOf).join('|')})`;

/** Paths at or below the first segment of an API route. The capture group is that segment, the API root. */
const API = new RegExp(`^(/(?:${API_ROOTS.join('|')}))(?:/|$)`);
const API_ROUTE = new RegExp(`^${anyOf(API_ROUTES)}$`);
const PAGE = new RegExp(`^${anyOf(PAGES)}/?$`);
/** The OpenAPI document. It is a file, so there are no paths below it. */
const DOCUMENT = /^\/openapi\.json$/;

/**
 * Returns true if the path is a page. On a page, Clerk's SDK may redirect the browser to the identity provider to renew the
 * session. On any other path, the middleware allows no redirect and authenticates requests in the same way as API requests, so
 * a new path is protected by default. A path that matches both a page and an API route counts as the API route.
 */
export const isPage = (pathname: string): boolean => PAGE.test(pathname) && !API_ROUTE.test(pathname);

/** Returns true for the OpenAPI document, and for paths at or below an API root, except pages. All responses there are JSON. */
export const isApi = (pathname: string): boolean =>
  DOCUMENT.test(pathname) || (API.test(pathname) && !isPage(pathname));

/**
 * Returns the API root of a path, or `/` for a path without an API root. Logs contain the root instead of the path, because
 * other segments may be personal data. The path of the OpenAPI document is its own root.
 */
export const apiRootOf = (pathname: string): string =>
  DOCUMENT.test(pathname) ? pathname : (API.exec(pathname)?.[1] ?? '/');

const PROXY = /^\/__clerk(?:\/|$)/;

/** Returns true for paths that the local stack (`npm run dev`) proxies to the identity provider's Frontend API. */
export const isProxied = (pathname: string): boolean => PROXY.test(pathname);

/** Characters that a path must not percent-encode: slashes, backslashes and unreserved characters (RFC 3986, section 2.3). */
const NEEDLESSLY_ENCODED = /[A-Za-z0-9\-._~/\\]/;

/** Returns true if the path percent-encodes a character of `NEEDLESSLY_ENCODED`. */
const isNeedlesslyEncoded = (pathname: string): boolean =>
  (pathname.match(/%[\da-f]{2}/gi) ?? []).some((octet) =>
    NEEDLESSLY_ENCODED.test(String.fromCharCode(Number.parseInt(octet.slice(1), 16))),
  );

/** A path that starts with a slash. It does not contain `//`, a backslash, `?`, `#` or a control character. */
const SEGMENTS = /^\/(?:[^/\\?#\p{Cc}]+\/)*[^/\\?#\p{Cc}]*$/u;
/** Paths that Next.js serves as aliases of a route, and the segments `.` and `..`. */
const ALIAS = /\.rsc$|\.segments(?:\/|$)|\/\.{1,2}(?:\/|$)/;

/** Returns true if the path has the canonical spelling. Requests with another spelling get a 404. */
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

/**
 * POST is for server actions, which a browser sends to the path in its address bar. The 404 page can send a server action too,
 * to a path without a page. The last entry of `SERVED` therefore also allows POST.
 */
const PAGE_METHODS = [...READ, 'POST', 'OPTIONS'] as const;

/**
 * Methods of paths that are not pages. The first matching entry applies. A path without a matching entry, such as
 * `/_next/image`, is not served.
 */
const SERVED: readonly { readonly at: RegExp; readonly methods: readonly string[] }[] = [
  // An API path with a trailing slash is not served. Each API route therefore has only one path.
  { at: new RegExp(`${API.source}.*(?<=/)$`), methods: [] },
  { at: API, methods: ALL },
  { at: DOCUMENT, methods: READ },
  { at: /^\/openapi\.json\//, methods: [] },
  { at: /^\/_next\/static\/./, methods: READ },
  { at: PROXY, methods: ALL },
  { at: /^\/[^_]/, methods: [...READ, 'POST'] },
];

/** Returns true if the method and the path of a request allow a body. */
export const takesBody = ({ method = '', url = '' }: IncomingMessage): boolean =>
  /^(?:POST|PUT|PATCH|DELETE)$/.test(method) && !url.startsWith('/health/');

/** Returns the methods that are served at this path. The list is empty for a path that is not served. */
export function allowedMethods(pathname: string): readonly string[] {
  if (!isCanonical(pathname)) return [];
  return isPage(pathname) ? PAGE_METHODS : (SERVED.find(({ at }) => at.test(pathname))?.methods ?? []);
}

/** A response to a request that does not reach a route. Its body is `{"message": …}`. */
export interface Rejection {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const BAD_REQUEST: Rejection = { status: 400, message: 'Bad request' };
export const NOT_FOUND: Rejection = { status: 404, message: 'Not found' };
export const METHOD_NOT_ALLOWED: Rejection = { status: 405, message: 'Method not allowed' };
const PAYLOAD_TOO_LARGE: Rejection = { status: 413, message: 'Payload too large' };

const methodNotAllowed = (methods: readonly string[]): Rejection => ({
  ...METHOD_NOT_ALLOWED,
  headers: { allow: methods.join(', ') },
});

/** Returns the 405 for a POST request that is not a server action. */
const postNotAllowed = (pathname: string): Rejection =>
  methodNotAllowed(allowedMethods(pathname).filter((method) => method !== 'POST'));

const MAX_PARAMETERS = 100;

/**
 * Returns true if a query string has more than 100 parameters. For each parameter, Next.js reads all parameters again
 * (`adapter` in next/dist/server/web/adapter.js), so its CPU time grows with the square of the number of parameters. The HTTP
 * server therefore checks the number before Next.js handles the request.
 */
const hasTooManyParameters = (query: string): boolean =>
  query.split('&').filter(Boolean).length > MAX_PARAMETERS;

export interface AddressedRequest {
  readonly method: string;
  readonly pathname: string;
  /** Query string without the question mark. */
  readonly query: string;
  readonly header: (name: string) => string | null | undefined;
  /** True if the service proxies the provider's Frontend API at `/__clerk`. Only the local stack does so. */
  readonly hasProxy: boolean;
}

/**
 * Returns a rejection for a request whose address, method or number of parameters this service does not accept. Outside the API
 * and proxied paths, also returns a rejection for a POST whose headers are not those of a server action (`checkActionHeaders`).
 * Returns undefined for any other request. The HTTP server and the middleware call this function. With `npm start`, the HTTP
 * server rejects a request before Next.js handles it. On a serverless platform, only the middleware runs.
 */
export function rejectionForAddress(request: AddressedRequest): Rejection | undefined {
  const { method, pathname, query, header, hasProxy } = request;
  if (hasTooManyParameters(query)) return BAD_REQUEST;
  const isProxy = isProxied(pathname);
  const methods = isProxy && !hasProxy ? [] : allowedMethods(pathname);
  if (methods.length === 0) return NOT_FOUND;
  if (!methods.includes(method)) return methodNotAllowed(methods);
  if (method !== 'POST' || isApi(pathname) || isProxy) return undefined;
  const kind = checkActionHeaders(header);
  if (kind === 'too-large') return PAYLOAD_TOO_LARGE;
  return kind === 'action' ? undefined : postNotAllowed(pathname);
}

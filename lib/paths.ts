/** Where the API's routes lie: below these, every answer is JSON. A new root is added here and nowhere else. */
export const API_ROOTS = ['auth', 'users', 'webhooks'] as const;

const API = new RegExp(`^/(?:${API_ROOTS.join('|')})(?:/|$)`);

/** True if every answer at this path is JSON. */
export const isApi = (pathname: string): boolean => API.test(pathname);

/** Where a person's browser navigates to. */
const PAGE = /^\/(?:$|(?:sign-in|sign-up)(?:\/|$)|account\/?$)/;

/**
 * True if the path is a page, where the identity provider may redirect a browser to renew its session. A path that is
 * neither a page nor below an API root is shielded as one of the API, so a new one is shielded at once.
 */
export const isPage = (pathname: string): boolean => PAGE.test(pathname);

/** The same-origin way to the identity provider's Frontend API, where the service runs a proxy: the local stack. */
const PROXY = /^\/__clerk(?:\/|$)/;

/** True if the path is the identity provider's own traffic. */
export const isProxied = (pathname: string): boolean => PROXY.test(pathname);

/** A letter, digit, `-`, `.`, `_` or `~` (RFC 3986, 2.3), percent-encoded without need; or a slash, of either kind. */
const ODDLY_ENCODED = /%(?:2[def]|3\d|4[1-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9ae])/i;
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
  return SEGMENTS.test(pathname) && !ODDLY_ENCODED.test(pathname) && !ALIAS.test(pathname);
}

const READ = ['GET', 'HEAD'] as const;
const ALL = [...READ, 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** What is served where, first match first. What no line names, the framework's own addresses among it, is no address. */
const SERVED: readonly { readonly at: RegExp; readonly methods: readonly string[] }[] = [
  // A route of the API has one address: not one with a slash too many.
  { at: new RegExp(`${API.source}.*/$`), methods: [] },
  { at: API, methods: ALL },
  { at: /^\/_next\/static\/./, methods: READ },
  { at: PROXY, methods: ALL },
  // POST: the one server action of the identity provider's SDK, also from the page of an address that names nothing.
  { at: PAGE, methods: [...READ, 'POST', 'OPTIONS'] },
  { at: /^\/[^_]/, methods: [...READ, 'POST'] },
];

/** The methods that are served at this path; none: the path names nothing. */
export function methodsAt(pathname: string): readonly string[] {
  return isPlain(pathname) ? (SERVED.find(({ at }) => at.test(pathname))?.methods ?? []) : [];
}

import { allowedMethods, isApi, isProxied } from './paths';
import { checkActionHeaders } from './server-action';

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

/** Returns the 405 of a POST request to a page that is not a server action. */
const postNotAllowed = (pathname: string): Rejection =>
  methodNotAllowed(allowedMethods(pathname).filter((method) => method !== 'POST'));

const MAX_PARAMETERS = 100;

/**
 * Returns true if a query string has more than 100 parameters. Next.js reads every parameter of a request once for each
 * parameter (`adapter` in next/dist/server/web/adapter.js), so their number has to be limited before it sees them.
 */
const hasTooManyParameters = (query: string): boolean =>
  query.split('&').filter(Boolean).length > MAX_PARAMETERS;

export interface AddressedRequest {
  readonly method: string;
  readonly pathname: string;
  /** Query string without the question mark. */
  readonly query: string;
  readonly header: (name: string) => string | null | undefined;
  /** True if the service proxies the Frontend API at `/__clerk`, which only the local stack does. */
  readonly hasProxy: boolean;
}

/**
 * Returns the rejection of a request that this service does not serve at this address, or undefined. The HTTP server and
 * the middleware both use it: only the middleware runs on a platform with functions, and only the HTTP server sees a
 * request before Next.js does.
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

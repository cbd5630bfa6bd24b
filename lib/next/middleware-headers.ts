/*
 * The headers with which Next.js passes the result of the middleware to the router. Next.js removes them from the response.
 */

const REQUEST = 'x-middleware-request-';
const NEXT = 'x-middleware-next';
const REWRITE = 'x-middleware-rewrite';

/** Returns true for a header that only the middleware may set. With `x-middleware-prefetch`, Next.js would respond itself. */
export const isMiddlewareHeader = (name: string): boolean => name.startsWith('x-middleware-');

/** Returns a header of the request that the middleware passes to the route. */
export const passedHeader = ({ headers }: Response, name: string): string | null =>
  headers.get(REQUEST + name);

/** Passes the request to its own page, even if the response rewrites its path. */
export function cancelRewrite({ headers }: Response): void {
  if (headers.has(REWRITE)) headers.set(NEXT, '1');
  headers.delete(REWRITE);
}

/** Sets another value of a header that the response already passes to the route. */
export const passHeader = ({ headers }: Response, name: string, value: string): void =>
  headers.set(REQUEST + name, value);

/** Passes the request to the page at another address. */
export function rewrite({ headers }: Response, { href }: URL): void {
  headers.delete(NEXT);
  headers.set(REWRITE, href);
}

import { appFileOf, isAlias } from '../next/app-files';
import type { RejectionStatus } from './rejection';

/**
 * Paths without a file that belong to the API: a version segment, as in `/users/v1/me`, the health checks, the OpenAPI document
 * and well-known addresses. Below `/__clerk`, the local stack proxies the provider's own API.
 */
const API = /^(?!\/__clerk\/).*\/v\d+(?:\/|$)|^\/(?:health|\.well-known)\/|^\/openapi\.json\/?$/s;

/** Returns true for a path of the API, and false for that of a page. Throws for a path that cannot be decoded. */
export function isApi(pathname: string): boolean {
  const decoded = decodeURIComponent(pathname);
  return appFileOf(decoded)?.isRoute ?? API.test(decoded);
}

const MAX_PARAMETERS = 100;
/** No route reads more. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** The parts of a request that decide whether the service handles it. */
export interface RequestLine {
  readonly method: string;
  readonly pathname: string;
  /** Query string without the question mark. */
  readonly query: string;
  readonly contentLength: string | null | undefined;
}

/** Returns true if a route or page may have this path. A route has no slash at the end. */
function isAddress(pathname: string): boolean {
  try {
    const decoded = decodeURIComponent(pathname);
    if (!decoded.startsWith('/') || isAlias(pathname)) return false;
    return !(pathname.endsWith('/') && isApi(pathname));
  } catch {
    return false;
  }
}

/**
 * Returns the status of the rejection of a request, or undefined if Next.js may handle it. Limits the number of query parameters,
 * because the time of Next.js grows with its square, and the declared size of the body, because Next.js logs the address of a
 * larger one. server.ts calls this function, and the middleware does, because only it runs on Vercel.
 */
export function rejectedStatus(request: RequestLine): RejectionStatus | undefined {
  const { method, pathname, query, contentLength } = request;
  if ((query.match(/[^&]+/g)?.length ?? 0) > MAX_PARAMETERS) return 400;
  if (!isAddress(pathname)) return 404;
  if (method === 'TRACE') return 405;
  // A browser states the length of a server action. Next.js copies each chunk of a body without a length.
  if (method === 'POST' && !isApi(pathname) && !contentLength) return 411;
  return Number(contentLength ?? 0) > MAX_BODY_BYTES ? 413 : undefined;
}

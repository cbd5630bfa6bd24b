import type { IncomingMessage } from 'node:http';
import { parseAndValidateFlightRouterState } from 'next/dist/server/app-render/parse-and-validate-flight-router-state.js';
import { BAD_REQUEST, isApi, type Rejection, rejectionForAddress } from '../routing/paths';
import { HEADERS_TOO_LARGE, pathnameOf, type ServerRequest } from './rejection';

/** Headers of the protocol between the client and the server of Next.js. API routes do not use them. */
const NEXT_HEADER = /^(?:rsc|next-.*|x-nextjs-.*|x-middleware-.*|x-action-.*)$/;

/**
 * Limits of the router state, which the Next.js client sends in a header. Next.js may need 0.5 s for a router state with deeper
 * nesting.
 */
const MAX_STATE_LENGTH = 8_000;
const MAX_STATE_DEPTH = 64;

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const character of text) {
    if (character === '[' || character === '{') deepest = Math.max(deepest, ++depth);
    if (character === ']' || character === '}') depth -= 1;
  }
  return deepest;
}

/**
 * Returns false for a router state that exceeds the limits or that Next.js cannot parse. If Next.js cannot parse a router
 * state, it responds with a 500.
 */
function hasValidRouterState({ headers }: IncomingMessage): boolean {
  const state = headers['next-router-state-tree'];
  if (state === undefined) return true;
  try {
    if (state.length > MAX_STATE_LENGTH || depthOf(decodeURIComponent(String(state))) > MAX_STATE_DEPTH)
      return false;
    parseAndValidateFlightRouterState(state);
    return true;
  } catch {
    return false;
  }
}

/** Maximum number of headers of a page request. Next.js copies each header several times. Apache httpd has the same default. */
const MAX_PAGE_HEADERS = 100;

/**
 * Returns false for a target that is not a path, such as `*` or an absolute URL. Also returns false if the Host header is
 * missing, except in HTTP/1.0, which does not require that header (RFC 9112, section 3.2).
 */
const hasValidTarget = ({ url, headers, httpVersion }: ServerRequest): boolean =>
  url.startsWith('/') && (headers.host !== undefined || httpVersion === '1.0');

/**
 * Returns the rejection of a request that this service does not serve. Returns undefined if Next.js may handle the request.
 * Removes Next.js-internal headers from an API request.
 */
export function rejectionFor(request: ServerRequest): Rejection | undefined {
  const { method, url, headers } = request;
  const pathname = pathnameOf(request);
  if (!hasValidTarget(request)) return BAD_REQUEST;
  const rejection = rejectionForAddress({
    method,
    pathname,
    query: url.slice(pathname.length + 1),
    header: (name) => headers[name]?.toString(),
    // With `true`, a request for the identity provider's Frontend API (`/__clerk`) does not get a 404 here. The middleware
    // knows whether this service is a proxy for that API, and calls `rejectionForAddress` again with the actual value.
    hasProxy: true,
  });
  if (rejection) return rejection;
  if (isApi(pathname)) {
    for (const name of Object.keys(headers)) if (NEXT_HEADER.test(name)) delete headers[name];
    return undefined;
  }
  // `rawHeaders` has two elements for each header: the name and the value.
  if (request.rawHeaders.length > 2 * MAX_PAGE_HEADERS) return HEADERS_TOO_LARGE;
  if (!hasValidRouterState(request)) return BAD_REQUEST;
  return undefined;
}

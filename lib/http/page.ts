import type { NextRequest } from 'next/server';
import { rewrite } from '../next/middleware-headers';
import { dropInvalidRouterState } from '../next/router-state';
import { withoutDefaultPort } from '../next/server-action';
import { clientHeaders } from './credential';
import { PAGE_PATH } from './signed-verdict';

const MAX_PATH_LENGTH = 2_000;
/** Files and pages that are the same for every visitor. */
const WITHOUT_SESSION = /^\/(?:robots\.txt|icon\.svg|sign-(?:in|up)(?:\/.*)?)$/;

/** Returns the address of a page request without the parameter that Next.js adds to the requests of its router. */
export function pageAddress({ url }: NextRequest): URL {
  const address = new URL(url);
  address.searchParams.delete('_rsc');
  return address;
}

/** Returns the headers of a page request without those that could forge a session, and with the path of the page. */
export function pageHeaders(request: NextRequest, { pathname, search }: URL): Headers {
  const headers = clientHeaders(request.headers);
  headers.delete('authorization');
  dropInvalidRouterState(headers);
  // Next.js compares this header with the origin of a server action, and Clerk's SDK redirects the browser back to this host.
  const forwarded = headers.get('x-forwarded-host');
  if (forwarded) headers.set('x-forwarded-host', withoutDefaultPort(forwarded));
  const path = pathname + search;
  headers.set(PAGE_PATH, path.length > MAX_PATH_LENGTH ? '/' : path);
  return headers;
}

/**
 * Returns the response if the session of a page could not be checked: a 503 that shows app/unavailable, `page` if it needs no
 * session, and undefined for a server action.
 */
export function unavailablePage(page: Response, { method, url }: NextRequest): Response | undefined {
  if (method === 'POST') return undefined;
  if (WITHOUT_SESSION.test(new URL(url).pathname)) return page;
  rewrite(page, new URL('/unavailable', url));
  page.headers.set('retry-after', '1');
  return new Response(null, { status: 503, headers: page.headers });
}

import { randomBytes } from 'node:crypto';
import { type NextRequest, NextResponse } from 'next/server';
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

/** Further hosts of pages, by what a page does with them. */
export interface DocumentHosts {
  readonly connect: string;
  readonly images: string;
  readonly frames: string;
}

interface Sources {
  readonly nonce: string;
  /** The hosts of the identity provider. Without them, pages use no other host. */
  readonly hosts?: DocumentHosts | undefined;
  /** True under `next dev`, which reloads changed code with `eval()`. */
  readonly development: boolean;
}

/**
 * Returns the policy of one response. It allows scripts with the nonce, and the scripts that those scripts load. Apart from the
 * service itself, it allows only `hosts`.
 */
export function contentSecurityPolicy({ nonce, hosts, development }: Sources): string {
  const directives = {
    'default-src': "'self'",
    'script-src': `'self' 'nonce-${nonce}' 'strict-dynamic' ${development ? "'unsafe-eval'" : ''}`,
    // The provider's components insert some styles without the nonce.
    'style-src': "'self' 'unsafe-inline'",
    'connect-src': `'self' ${hosts?.connect ?? ''}`,
    'img-src': `'self' data: ${hosts?.images ?? ''}`,
    'frame-src': hosts?.frames ?? "'none'",
    'worker-src': "'self' blob:",
    'object-src': "'none'",
    'base-uri': "'self'",
    'form-action': "'self'",
    'frame-ancestors': "'none'",
  };
  return Object.entries(directives)
    .map(([name, sources]) => `${name} ${sources.trim()}`)
    .join('; ');
}

/** Passes a request on to its page, with the given headers, a new nonce in `x-nonce`, and the policy for that nonce. */
export function nextForDocument(given: Headers, hosts?: DocumentHosts): NextResponse {
  const nonce = randomBytes(16).toString('base64');
  const policy = contentSecurityPolicy({ nonce, hosts, development: process.env.NODE_ENV === 'development' });
  const headers = new Headers(given);
  headers.set('x-nonce', nonce);
  // Next.js reads the nonce for its own scripts from this request header.
  headers.set('content-security-policy', policy);
  const response = NextResponse.next({ request: { headers } });
  response.headers.set('content-security-policy', policy);
  return response;
}

import { randomBytes } from 'node:crypto';
import { NextResponse } from 'next/server';

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

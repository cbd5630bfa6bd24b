import { randomBytes } from 'node:crypto';
import { NextResponse } from 'next/server';

interface Sources {
  readonly nonce: string;
  /** The instance's Frontend API. */
  readonly frontendApi: string;
  /** The Frontend API is reached through this origin: the local stack, which loads nothing from another host. */
  readonly sameOrigin: boolean;
  /** `next dev` evaluates code to reload it. */
  readonly development: boolean;
}

/**
 * The policy of one answer: scripts run only by its nonce, and nothing comes from a host that this instance does not
 * need. The SDK's own `contentSecurityPolicy` option can only add to a list of payment, map and telemetry hosts.
 */
export function contentSecurityPolicy({ nonce, frontendApi, sameOrigin, development }: Sources): string {
  const provider = sameOrigin
    ? { connect: '', images: '', frames: "'none'" }
    : {
        connect: frontendApi,
        images: 'https://img.clerk.com',
        // Asked for by the provider's bot protection.
        frames: 'https://challenges.cloudflare.com',
      };
  const directives = {
    'default-src': "'self'",
    'script-src': `'self' 'nonce-${nonce}' 'strict-dynamic' ${development ? "'unsafe-eval'" : ''}`,
    // The provider's components insert styles, not all of them with the nonce.
    'style-src': "'self' 'unsafe-inline'",
    'connect-src': `'self' ${provider.connect}`,
    'img-src': `'self' data: ${provider.images}`,
    'frame-src': provider.frames,
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

/** Lets a request pass with these headers; its answer may be a document, whose scripts run by a fresh nonce (`x-nonce`). */
export function passForDocument(given: Headers, sources: Omit<Sources, 'nonce'>): NextResponse {
  const nonce = randomBytes(16).toString('base64');
  const policy = contentSecurityPolicy({ ...sources, nonce });
  const headers = new Headers(given);
  headers.set('x-nonce', nonce);
  // Next.js reads the nonce for its own scripts from here.
  headers.set('content-security-policy', policy);
  const response = NextResponse.next({ request: { headers } });
  response.headers.set('content-security-policy', policy);
  return response;
}

/** The policy of an answer that is no document: opened as one, it may do nothing. */
const DATA_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Lets a request pass with these headers; its answer is no document. */
export function passForData(headers: Headers): NextResponse {
  const response = NextResponse.next({ request: { headers } });
  response.headers.set('content-security-policy', DATA_POLICY);
  return response;
}

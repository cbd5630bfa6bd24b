import { randomBytes } from 'node:crypto';
import { NextResponse } from 'next/server';

interface Sources {
  readonly nonce: string;
  /** Origin of the Frontend API of the identity provider's instance. */
  readonly frontendApi: string;
  /** True on the local stack (dev/). There, the service proxies the Frontend API on its own origin. Pages use no other host. */
  readonly sameOrigin: boolean;
  /** True under `next dev`, which reloads changed code with `eval()`. */
  readonly development: boolean;
}

/**
 * Hosts of the provider's abuse and fraud protection. Every application needs them, because a sign-in can hang or fail if they
 * are blocked. These hosts also use ports other than 443, but only for fetches.
 * Source: https://clerk.com/docs/guides/secure/best-practices/csp-headers
 */
const PROTECTION = 'https://*.protect.clerk.com';
/** Avatars and logos. The provider's components also read them with `fetch`. */
const IMAGES = 'https://img.clerk.com';
/** The provider's bot protection. */
const BOT_PROTECTION = 'https://challenges.cloudflare.com';

/**
 * Returns the policy of one response. It allows scripts with the nonce, and the scripts that those scripts load. Apart from the
 * service itself, it allows only hosts that the provider's instance needs. The SDK's own `contentSecurityPolicy` option is not
 * used, because it always adds payment, map and telemetry hosts. A unit test compares this policy with the SDK's policy.
 */
export function contentSecurityPolicy({ nonce, frontendApi, sameOrigin, development }: Sources): string {
  const provider = (hosts: string) => (sameOrigin ? '' : hosts);
  const directives = {
    'default-src': "'self'",
    'script-src': `'self' 'nonce-${nonce}' 'strict-dynamic' ${development ? "'unsafe-eval'" : ''}`,
    // The provider's components insert some styles without the nonce.
    'style-src': "'self' 'unsafe-inline'",
    'connect-src': `'self' ${provider(`${frontendApi} ${IMAGES} ${PROTECTION}:*`)}`,
    'img-src': `'self' data: ${provider(IMAGES)}`,
    'frame-src': provider(`${BOT_PROTECTION} ${PROTECTION}`) || "'none'",
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
export function nextForDocument(given: Headers, sources: Omit<Sources, 'nonce'>): NextResponse {
  const nonce = randomBytes(16).toString('base64');
  const policy = contentSecurityPolicy({ ...sources, nonce });
  const headers = new Headers(given);
  headers.set('x-nonce', nonce);
  // Next.js reads the nonce for its own scripts from this request header.
  headers.set('content-security-policy', policy);
  const response = NextResponse.next({ request: { headers } });
  response.headers.set('content-security-policy', policy);
  return response;
}

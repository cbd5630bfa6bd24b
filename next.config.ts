import { existsSync } from 'node:fs';
import type { NextConfig } from 'next';
import { PHASE_PRODUCTION_BUILD } from 'next/constants.js';
import { API_ROOTS } from './lib/routing/roots.ts';

/** Headers of every response. The Content-Security-Policy contains a nonce, so middleware.ts sets it. */
const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=(), browsing-topics=()',
  'cross-origin-opener-policy': 'same-origin-allow-popups',
  // Browsers ignore it over http.
  'strict-transport-security': 'max-age=31536000',
};

const config: NextConfig = {
  poweredByHeader: false,
  reactStrictMode: true,
  // No page uses the image optimizer, whose endpoint fetches and logs any address.
  images: { unoptimized: true },
  // A webhook sender counts a redirect as a failure, so an address with an extra slash is a 404, which shows the mistake.
  skipTrailingSlashRedirect: true,
  experimental: {
    // A process loads a route at its first request. Most processes never serve a page.
    preloadEntriesOnStart: false,
    // Otherwise an API path responds with a redirect to a header of the Next.js client
    // (https://github.com/vercel/next.js/pull/82119).
    validateRSCRequestHeaders: false,
    // The part of a body that Next.js buffers for the middleware: above the 1 MiB of a webhook, below the default of 10 MB.
    proxyClientMaxBodySize: '2mb',
    // After a restart of `next dev`, a stale entry of this cache can make a page reload in a loop.
    turbopackFileSystemCacheForDev: false,
  },
  ...(process.env['NEXT_DIST_DIR'] ? { distDir: process.env['NEXT_DIST_DIR'] } : {}),
  // An API path that does not exist gets a response in JSON.
  rewrites: async () => ({
    beforeFiles: [],
    afterFiles: [],
    fallback: [
      { source: `/:root(${API_ROOTS.join('|')})/:path*`, destination: '/api-not-found/:root/:path*' },
    ],
  }),
  headers: async () => [
    { source: '/:path*', headers: Object.entries(securityHeaders).map(([key, value]) => ({ key, value })) },
  ],
};

export default function configure(phase: string): NextConfig {
  // The build tool of the platform would include it in the functions.
  if (phase === PHASE_PRODUCTION_BUILD && process.env['VERCEL'] && existsSync('.env.local')) {
    throw new Error(
      'A build for deployment must not find .env.local: its values would be part of what is deployed.',
    );
  }
  return config;
}

// @ts-check
// JavaScript: of TypeScript every start would first make some, by a compiler that then stays in memory.
import { existsSync } from 'node:fs';
import { PHASE_PRODUCTION_BUILD } from 'next/constants.js';
import { API_ROOTS } from './lib/roots.mjs';

/** On every answer, pages and API alike. The Content-Security-Policy has a nonce and comes from middleware.ts. */
const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=(), browsing-topics=()',
  'cross-origin-opener-policy': 'same-origin-allow-popups',
  // Browsers heed it over https only.
  'strict-transport-security': 'max-age=31536000',
};

/** @type {import('next').NextConfig} */
const config = {
  poweredByHeader: false,
  reactStrictMode: true,
  // Nothing uses the optimizer, whose address fetches what it is told and logs it.
  images: { unoptimized: true },
  // A redirect is a failure to the sender of webhooks: an address with a slash too many is a 404 that tells of the mistake.
  skipTrailingSlashRedirect: true,
  experimental: {
    // A process loads a route when it is first asked for: most of them never serve a page.
    preloadEntriesOnStart: false,
    // Otherwise a header that only the framework's own client sends makes an API path answer a redirect
    // (https://github.com/vercel/next.js/pull/82119).
    validateRSCRequestHeaders: false,
    // What Next.js keeps of a body before a route sees it: above the 1 MiB that a route takes, far below its 10 MB.
    proxyClientMaxBodySize: '2mb',
    // After a restart of `next dev` a stale entry of this cache can make a page reload for ever.
    turbopackFileSystemCacheForDev: false,
  },
  ...(process.env['NEXT_DIST_DIR'] ? { distDir: process.env['NEXT_DIST_DIR'] } : {}),
  // An API path that does not exist is answered in JSON, as every other one.
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

/** @param {string} phase */
export default function configure(phase) {
  // The platform's build tool would pack it into the functions.
  if (phase === PHASE_PRODUCTION_BUILD && process.env['VERCEL'] && existsSync('.env.local')) {
    throw new Error(
      'A build for deployment must not find .env.local: its values would be part of what is deployed.',
    );
  }
  return config;
}

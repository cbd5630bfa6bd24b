import type { NextConfig } from 'next';

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

const config: NextConfig = {
  poweredByHeader: false,
  reactStrictMode: true,
  // `npm run check:types` checks every file of the project; a build need not do it again.
  typescript: { ignoreBuildErrors: true },
  ...(process.env['NEXT_DIST_DIR'] ? { distDir: process.env['NEXT_DIST_DIR'] } : {}),
  // An API path that does not exist is answered in JSON, as every other one.
  rewrites: async () => ({
    beforeFiles: [],
    afterFiles: [],
    fallback: [{ source: '/:root(auth|users|webhooks)/:path*', destination: '/api-not-found' }],
  }),
  headers: async () => [
    { source: '/:path*', headers: Object.entries(securityHeaders).map(([key, value]) => ({ key, value })) },
  ],
};

export default config;

import { existsSync } from 'node:fs';
import type { NextConfig } from 'next';
import { PHASE_PRODUCTION_BUILD } from 'next/constants.js';
import { listAppFiles } from './lib/next/app-files.ts';

// A build inlines these variables, and a variable of another project could make the provider's SDK reject every request. The
// service sets the ones that it needs when it starts (lib/clerk/sdk-environment.ts).
for (const name of Object.keys(process.env))
  if (name.startsWith('NEXT_PUBLIC_CLERK_')) delete process.env[name];

/** Headers of every response. middleware.ts sets the Content-Security-Policy, whose nonce differs in each response. */
const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=(), browsing-topics=()',
  'cross-origin-opener-policy': 'same-origin-allow-popups',
  // Browsers ignore this header over http.
  'strict-transport-security': 'max-age=31536000',
};

const config: NextConfig = {
  // `next dev` serves its scripts only to pages of these hosts and of localhost.
  allowedDevOrigins: ['127.0.0.1', ...(process.env['DEV_HOSTS']?.match(/\S+/g) ?? [])],
  // By default, Next.js hides the state of the router and the prefix of `/_next/data/…` from the middleware.
  skipProxyUrlNormalize: true,
  poweredByHeader: false,
  reactStrictMode: true,
  // Disables the image optimizer, because its endpoint fetches and logs any URL that a client sends. No page uses the
  // optimizer.
  images: { unoptimized: true },
  // By default, Next.js redirects a path with a trailing slash, and a webhook sender treats a redirect as a failure.
  skipTrailingSlashRedirect: true,
  // A bundler would copy these packages into each group of routes that uses them.
  serverExternalPackages: ['undici', '@vercel/kv', 'cockatiel'],
  experimental: {
    // Loads a route on its first request. By default, each process loads all routes at its start, but most processes never
    // serve a page.
    preloadEntriesOnStart: false,
    // If this is true, an API request with a header of the Next.js client gets a redirect instead of the response of the route
    // (https://github.com/vercel/next.js/pull/82119).
    validateRSCRequestHeaders: false,
    // Maximum number of bytes of a body that Next.js buffers for the middleware. This limit exceeds 1 MiB, the maximum size of
    // a body that the middleware accepts. The default is 10 MB.
    proxyClientMaxBodySize: '2mb',
    // After a restart of `next dev`, a stale entry of this cache can make a page reload in a loop.
    turbopackFileSystemCacheForDev: false,
  },
  // Excludes tests, because a type error in a test must not fail the build. `npm run check` reports it.
  typescript: { tsconfigPath: 'tsconfig.build.json' },
  // Collects the modules that `npm start` needs in .next/standalone, for the Dockerfile. Vercel collects them itself.
  ...(process.env['VERCEL'] ? {} : { output: 'standalone' as const }),
  ...(process.env['NEXT_DIST_DIR'] ? { distDir: process.env['NEXT_DIST_DIR'] } : {}),
  // Sends an unknown API path (lib/http/address.ts) to the route app/api-not-found, which responds with a 404 in JSON.
  rewrites: async () => ({
    beforeFiles: [],
    afterFiles: [],
    fallback: [
      { source: '/:path((?:.+/)?v\\d+(?:/.*)?)', destination: '/api-not-found' },
      { source: '/health/:path*', destination: '/api-not-found' },
      { source: '/.well-known/:path*', destination: '/api-not-found' },
    ],
  }),
  headers: async () => [
    { source: '/:path*', headers: Object.entries(securityHeaders).map(([key, value]) => ({ key, value })) },
  ],
};

export default function configure(phase: string): NextConfig {
  // Vercel's build tool would include .env.local in the functions that it deploys.
  if (phase === PHASE_PRODUCTION_BUILD && process.env['VERCEL'] && existsSync('.env.local')) {
    throw new Error(
      'A build for deployment must not find .env.local, because the deployment would contain its values. Remove the file.',
    );
  }
  // A build inlines the list into lib/next/app-files.ts.
  return { ...config, env: { APP_FILES: listAppFiles() } };
}

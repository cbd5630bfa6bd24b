import { clerkMiddleware } from '@clerk/nextjs/server';
import { type NextFetchEvent, NextRequest, NextResponse } from 'next/server';
import { expect, test } from 'vitest';
import { setEnvironment } from '#lib/base/env';
import { documentHosts } from '#lib/clerk/browser-settings';
import { contentSecurityPolicy } from '#lib/http/page';

/** Origin of the provider's API for browsers. */
const FRONTEND_API = 'https://clerk.example.com';

/**
 * Sources that the SDK's Content-Security-Policy allows and this service's Content-Security-Policy does not allow. Each key is
 * the reason for this difference.
 */
const EXCLUDED_BY_REASON = {
  'telemetry is disabled': [
    'connect-src https://clerk-telemetry.com',
    'connect-src https://*.clerk-telemetry.com',
  ],
  'the application takes no payments': [
    'connect-src https://api.stripe.com',
    'connect-src https://maps.googleapis.com',
    'frame-src https://*.js.stripe.com',
    'frame-src https://js.stripe.com',
    'frame-src https://hooks.stripe.com',
  ],
  "frame-ancestors 'none' forbids every frame that shows a page of this service": ["frame-src 'self'"],
  "'strict-dynamic' makes browsers ignore hosts of scripts": [
    'script-src https://*.js.stripe.com',
    'script-src https://js.stripe.com',
    'script-src https://maps.googleapis.com',
    'script-src https://*.protect.clerk.com',
  ],
  "a nonce makes browsers ignore 'unsafe-inline'": ["script-src 'unsafe-inline'"],
  'the SDK adds this source unless NODE_ENV is production': ["script-src 'unsafe-eval'"],
};

/** Returns the sources of a policy, each as `<directive> <source>`. Omits the nonce. */
function sourcesOf(policy: string): string[] {
  const directives = policy.split(';').map((directive) => directive.trim().split(/ +/));
  return directives
    .flatMap(([name = '', ...sources]) => sources.map((source) => `${name} ${source}`))
    .filter((source) => !source.includes("'nonce-"));
}

/** Returns the sources of the Content-Security-Policy that the installed SDK sets for a production instance. */
async function sdkSources(): Promise<string[]> {
  // The handler returns a redirect, because the SDK requires an encryption key for any other response.
  const middleware = clerkMiddleware(() => NextResponse.redirect('https://app.example.com/sign-in'), {
    publishableKey,
    secretKey: 'sk_live_unused',
    contentSecurityPolicy: { strict: true },
  });
  const event: NextFetchEvent = Object.create(null);
  // The header marks a request that is not a navigation. The SDK would redirect a navigation to the provider.
  const request = new NextRequest('https://app.example.com/', { headers: { 'sec-fetch-dest': 'empty' } });
  const response = await middleware(request, event);
  const sources = sourcesOf(response?.headers.get('content-security-policy') ?? '');
  // The SDK lists the host of `FRONTEND_API` without the scheme.
  return sources.map((source) => source.replace(/ clerk\.example\.com$/, ` ${FRONTEND_API}`));
}

const publishableKey = `pk_live_${Buffer.from(`${new URL(FRONTEND_API).host}$`).toString('base64')}`;
setEnvironment({ IDP_SECRET_KEY: 'sk_live_unused_key', IDP_PUBLISHABLE_KEY: publishableKey });
const sources = { nonce: 'abc', hosts: documentHosts(), development: false };

test("The Content-Security-Policy of the service contains all sources of the policy of Clerk's SDK, except those that the service excludes on purpose", async () => {
  const required = await sdkSources();
  expect(required).toContain(`connect-src ${FRONTEND_API}`);
  const allowed = sourcesOf(contentSecurityPolicy(sources));
  const missing = required.filter((source) => !allowed.includes(source));
  expect(missing.toSorted()).toEqual(Object.values(EXCLUDED_BY_REASON).flat().toSorted());
});

// On the local stack, the service proxies Clerk's Frontend API under the host of the page (without `hosts`).
test.each([
  {
    what: 'for a real Clerk instance allows only the host of the page and the hosts that Clerk needs',
    given: sources,
    script: "'nonce-abc' 'strict-dynamic'",
    connect: "'self' https://clerk.example.com https://img.clerk.com https://*.protect.clerk.com:*",
    img: "'self' data: https://img.clerk.com",
    frame: 'https://challenges.cloudflare.com https://*.protect.clerk.com',
  },
  {
    what: 'for the local stack under `next dev` allows `eval()`, but only the host of the page',
    given: { ...sources, hosts: undefined, development: true },
    script: "'nonce-abc' 'strict-dynamic' 'unsafe-eval'",
    connect: "'self'",
    img: "'self' data:",
    frame: "'none'",
  },
])('The Content-Security-Policy $what', ({ given, script, connect, img, frame }) => {
  expect(contentSecurityPolicy(given)).toBe(
    `default-src 'self'; script-src 'self' ${script}; style-src 'self' 'unsafe-inline'; connect-src ${connect}; ` +
      `img-src ${img}; frame-src ${frame}; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; ` +
      "form-action 'self'; frame-ancestors 'none'",
  );
});

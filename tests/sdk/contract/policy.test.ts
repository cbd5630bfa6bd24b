import { clerkMiddleware } from '@clerk/nextjs/server';
import { type NextFetchEvent, NextRequest, NextResponse } from 'next/server';
import { expect, test } from 'vitest';
import { contentSecurityPolicy } from '#lib/http/content-security-policy';
import { KEYS } from '../service';

const FRONTEND_API = 'https://clerk.build.example';

/** Sources of the SDK's policy that ours leaves out, and why. */
const EXCLUDED = {
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
  'an internal host of the provider': ['connect-src https://images.clerkstage.dev'],
  "frame-ancestors 'none' forbids frames of this origin": ["frame-src 'self'"],
  "'strict-dynamic' makes browsers ignore hosts of scripts": [
    'script-src https://*.js.stripe.com',
    'script-src https://js.stripe.com',
    'script-src https://maps.googleapis.com',
    'script-src https://*.protect.clerk.com',
  ],
  "a nonce makes browsers ignore 'unsafe-inline'": ["script-src 'unsafe-inline'"],
  'the SDK adds it outside production': ["script-src 'unsafe-eval'"],
};

/** Returns a policy as pairs of directive and source, without the nonce. */
function sourcesOf(policy: string): string[] {
  const directives = policy.split(';').map((directive) => directive.trim().split(/ +/));
  return directives
    .flatMap(([name = '', ...sources]) => sources.map((source) => `${name} ${source}`))
    .filter((source) => !source.includes("'nonce-"));
}

/** Returns the policy that the SDK would set for the same instance. */
async function sdkPolicy(): Promise<string> {
  // A redirect, because for any other response the SDK requires an encryption key next to a secret key.
  const middleware = clerkMiddleware(() => NextResponse.redirect('https://app.example.com/sign-in'), {
    publishableKey: KEYS.live.IDP_PUBLISHABLE_KEY,
    secretKey: KEYS.live.IDP_SECRET_KEY,
    contentSecurityPolicy: { strict: true },
  });
  const event: NextFetchEvent = Object.create(null);
  // With this header the request is not a navigation, which the SDK would redirect to its own host.
  const request = new NextRequest('https://app.example.com/', { headers: { 'sec-fetch-dest': 'empty' } });
  const response = await middleware(request, event);
  return response?.headers.get('content-security-policy') ?? '';
}

test('The policy allows every source of the SDK that is not excluded by name', async () => {
  const options = { nonce: 'n', frontendApi: FRONTEND_API, sameOrigin: false, development: false };
  const allowed = [...sourcesOf(contentSecurityPolicy(options)), ...Object.values(EXCLUDED).flat()];
  const theirs = sourcesOf(await sdkPolicy());
  // The SDK names this host without a scheme.
  const { host } = new URL(FRONTEND_API);
  expect(theirs).toContain(`connect-src ${host}`);
  const missing = theirs
    .map((source) => source.replace(` ${host}`, ` ${FRONTEND_API}`))
    .filter((source) => !allowed.includes(source));
  expect(missing).toEqual([]);
});

import { clerkMiddleware } from '@clerk/nextjs/server';
import { type NextFetchEvent, NextRequest, NextResponse } from 'next/server';
import { expect, test } from 'vitest';
import { contentSecurityPolicy } from '#lib/http/content-security-policy';

const FRONTEND_API = 'https://clerk.example.com';

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
  'an internal host of the provider, which later versions of the SDK no longer list': [
    'connect-src https://images.clerkstage.dev',
  ],
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

/** Returns the policy that the installed SDK would set for the same instance. */
async function sdkPolicy(): Promise<string> {
  const publishableKey = `pk_live_${Buffer.from(`${new URL(FRONTEND_API).host}$`).toString('base64')}`;
  // A redirect, because for any other response the SDK wants an encryption key next to a secret key.
  const middleware = clerkMiddleware(() => NextResponse.redirect('https://app.example.com/sign-in'), {
    publishableKey,
    secretKey: 'sk_live_unused',
    contentSecurityPolicy: { strict: true },
  });
  const event: NextFetchEvent = Object.create(null);
  // With this header the request is not a navigation, which the SDK would redirect to its own host.
  const request = new NextRequest('https://app.example.com/', { headers: { 'sec-fetch-dest': 'empty' } });
  const response = await middleware(request, event);
  return response?.headers.get('content-security-policy') ?? '';
}

test('The policy allows every source of the SDK that is not excluded by name', async () => {
  const ours = sourcesOf(
    contentSecurityPolicy({ nonce: 'n', frontendApi: FRONTEND_API, sameOrigin: false, development: false }),
  );
  const theirs = sourcesOf(await sdkPolicy());
  expect(theirs).toContain('connect-src clerk.example.com');
  const missing = theirs
    .map((source) => source.replace('connect-src clerk.example.com', `connect-src ${FRONTEND_API}`))
    .filter((source) => !ours.includes(source));
  expect(missing.toSorted()).toEqual(Object.values(EXCLUDED).flat().toSorted());
});

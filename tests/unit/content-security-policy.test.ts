import { expect, test } from 'vitest';
import { contentSecurityPolicy, nextForDocument } from '#lib/http/content-security-policy';
import { EXCLUDED_SOURCES, FRONTEND_API, ownSources, sdkSources } from '../sdk/policy-sources';

test("The Content-Security-Policy of the service contains all sources of the policy of Clerk's SDK, except those that the service excludes on purpose", async () => {
  const required = await sdkSources();
  expect(required).toContain(`connect-src ${FRONTEND_API}`);
  const allowed = ownSources();
  const missing = required.filter((source) => !allowed.includes(source));
  expect(missing.toSorted()).toEqual(EXCLUDED_SOURCES.toSorted());
});

const sources = { frontendApi: 'https://clerk.example', sameOrigin: false, development: false };
/** Directives at the end of every policy. */
const COMMON =
  "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'";

test('The Content-Security-Policy for a real Clerk instance allows only the host of the page and the hosts that Clerk needs', () => {
  expect(contentSecurityPolicy({ ...sources, nonce: 'abc' })).toBe(
    [
      "default-src 'self'",
      "script-src 'self' 'nonce-abc' 'strict-dynamic'",
      "style-src 'self' 'unsafe-inline'",
      "connect-src 'self' https://clerk.example https://img.clerk.com https://*.protect.clerk.com:*",
      "img-src 'self' data: https://img.clerk.com",
      'frame-src https://challenges.cloudflare.com https://*.protect.clerk.com',
      COMMON,
    ].join('; '),
  );
});

// On the local stack, the service proxies Clerk's Frontend API under the host of the page (`sameOrigin`).
test('The Content-Security-Policy for the local stack under `next dev` allows `eval()`, but no host other than the host of the page', () => {
  const local = { ...sources, sameOrigin: true, development: true, nonce: 'abc' };
  expect(contentSecurityPolicy(local)).toBe(
    [
      "default-src 'self'",
      "script-src 'self' 'nonce-abc' 'strict-dynamic' 'unsafe-eval'",
      "style-src 'self' 'unsafe-inline'",
      "connect-src 'self'",
      "img-src 'self' data:",
      "frame-src 'none'",
      COMMON,
    ].join('; '),
  );
});

test('Each HTML document has a new nonce, which is in the request headers for Next.js and in the Content-Security-Policy of the response', () => {
  const nonces = [1, 2].map(() => {
    const { headers } = nextForDocument(new Headers({ accept: 'text/html' }), sources);
    const nonce = headers.get('x-middleware-request-x-nonce') ?? '';
    const policy = contentSecurityPolicy({ ...sources, nonce });
    expect(headers.get('x-middleware-request-content-security-policy')).toBe(policy);
    expect(headers.get('content-security-policy')).toBe(policy);
    expect(headers.get('x-middleware-request-accept')).toBe('text/html');
    expect(Buffer.from(nonce, 'base64')).toHaveLength(16);
    return nonce;
  });
  expect(nonces[0]).not.toBe(nonces[1]);
});

import { expect, test } from 'vitest';
import { contentSecurityPolicy, nextForDocument } from '#lib/http/content-security-policy';
import { EXCLUDED_SOURCES, FRONTEND_API, ownSources, sdkSources } from '../sdk/policy-sources';

test('The policy allows every source of the SDK that is not excluded by name', async () => {
  const theirs = await sdkSources();
  expect(theirs).toContain(`connect-src ${FRONTEND_API}`);
  const allowed = ownSources();
  const missing = theirs.filter((source) => !allowed.includes(source));
  expect(missing.toSorted()).toEqual(EXCLUDED_SOURCES.toSorted());
});

const sources = { frontendApi: 'https://clerk.example', sameOrigin: false, development: false };
const COMMON =
  "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'";

test('A page of a real instance uses only its own origin and the hosts of the provider', () => {
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

test('A page of the local stack uses only its own origin, and `next dev` may evaluate code', () => {
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

test('Each document has a nonce of its own, which Next.js and the page receive', () => {
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

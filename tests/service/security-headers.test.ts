import { expect, test } from 'vitest';
import { contentSecurityPolicy } from '#lib/http/content-security-policy';
import { send } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());

function policyOf(headers: Headers): Record<string, string[]> {
  const directives = (headers.get('content-security-policy') ?? '')
    .split('; ')
    .map((text) => text.split(' '));
  return Object.fromEntries(directives.map(([name = '', ...sources]) => [name, sources]));
}

test.each(['/', '/docs', '/sign-in', '/sign-up', '/no-such-page', '/users/v1/me', '/icon.svg'])(
  'The response to GET %s has the security headers',
  async (path) => {
    const { headers } = await send(`${service.url}${path}`);
    expect(Object.fromEntries(headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'strict-origin-when-cross-origin',
      'cross-origin-opener-policy': 'same-origin-allow-popups',
      'strict-transport-security': expect.stringMatching(/^max-age=\d{8}/),
      'permissions-policy': expect.stringContaining('camera=()'),
    });
    expect(headers.has('x-powered-by')).toBe(false);
    const policy = policyOf(headers);
    expect(policy['frame-ancestors']).toEqual(["'none'"]);
    expect(policy['object-src'] ?? policy['default-src']).toEqual(["'none'"]);
    expect(policy['base-uri']?.join()).toMatch(/^'(?:self|none)'$/);
  },
);

test('Each script of a page has the nonce from the Content-Security-Policy of the response, and each response has a different nonce', async () => {
  const nonces = await Promise.all(
    ['/', '/docs', '/sign-in', '/no-such-page'].map(async (path) => {
      const { body, headers } = await send(`${service.url}${path}`);
      const [nonce] = (policyOf(headers)['script-src'] ?? []).filter((source) =>
        source.startsWith("'nonce-"),
      );
      const scripts = [...String(body).matchAll(/<script\b[^>]*>/g)].map(([tag]) => tag);
      expect(scripts.length).toBeGreaterThan(0);
      for (const tag of scripts) expect(tag).toContain(`nonce="${nonce?.slice(7, -1)}"`);
      return nonce;
    }),
  );
  expect(new Set(nonces).size).toBe(4);
});

test('A page does not use a nonce or a Content-Security-Policy from the request', async () => {
  const { body, headers } = await send(`${service.url}/`, {
    headers: { 'x-nonce': 'chosen', 'content-security-policy': "script-src 'nonce-chosen'" },
  });
  expect(String(body)).not.toContain('chosen');
  expect(headers.get('content-security-policy')).not.toContain('chosen');
});

const sources = { nonce: 'n', frontendApi: 'https://clerk.example.com', development: false };
/** Returns the URLs in a policy. Each URL allows a host other than the host of the page. */
const foreign = (policy: string) => policy.match(/https?:[^ ;]*/g) ?? [];

// On the local stack, the service proxies Clerk's Frontend API under the host of the page (`sameOrigin`).
test('The Content-Security-Policy of the local stack allows no host except the host of the page, and no unsafe-eval', () => {
  const policy = contentSecurityPolicy({ ...sources, sameOrigin: true });
  expect(foreign(policy)).toEqual([]);
  expect(policy).not.toContain('unsafe-eval');
});

test('With a real Clerk instance, the Content-Security-Policy allows only the host of the page, hosts of Clerk and the host of the captcha', () => {
  const policy = contentSecurityPolicy({ ...sources, sameOrigin: false });
  expect(foreign(policy)).toEqual([
    'https://clerk.example.com',
    'https://img.clerk.com',
    'https://*.protect.clerk.com:*',
    'https://img.clerk.com',
    'https://challenges.cloudflare.com',
    'https://*.protect.clerk.com',
  ]);
  expect(policy).toContain("script-src 'self' 'nonce-n' 'strict-dynamic';");
});

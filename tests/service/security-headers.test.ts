import { expect, test } from 'vitest';
import { cookie, send, tokenFor } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

const service = sharedService();

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

test('Each script of a page has the nonce of the Content-Security-Policy of the response, which is a new one and not that of the request', async () => {
  const nonces = await Promise.all(
    ['/', '/docs', '/sign-in', '/no-such-page'].map(async (path) => {
      const chosen = { 'x-nonce': 'chosen', 'content-security-policy': "script-src 'nonce-chosen'" };
      const { body, headers } = await send(`${service.url}${path}`, { headers: chosen });
      expect(String(body)).not.toContain('chosen');
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

test('The sign-in page redirects a visitor with a session only to an absolute path of the service', async () => {
  const session = cookie(tokenFor(service.idp, 'user_of_a_page'));
  const signIn = async (target: string, headers: Record<string, string> = session) => {
    const url = `${service.url}/sign-in?redirect_url=${encodeURIComponent(target)}`;
    const { status, headers: returned } = await send(url, { headers });
    return [status, returned.get('location')];
  };
  expect(await signIn('/account?tab=1')).toEqual([307, '/account?tab=1']);
  expect(await signIn('/account', {})).toEqual([200, null]);
  for (const target of [
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    '//[',
    '/.//evil.example',
    '/x/..//evil.example',
    '/%2e//evil.example',
    'account',
  ])
    expect(await signIn(target), target).toEqual([200, null]);
});

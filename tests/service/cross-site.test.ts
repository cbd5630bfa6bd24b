import { describe, expect, test } from 'vitest';
import { bearer, cookie, send, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const FRONTEND = 'https://app.example.com';

const service = stopAfterAll(await startTestService({ environment: { IDP_AUTHORIZED_PARTIES: FRONTEND } }));

const token = () => tokenFor(service.idp, 'user_of_a_browser', { azp: FRONTEND });
const call = (method: 'GET' | 'POST', credential: Record<string, string>, headers: Record<string, string>) =>
  method === 'GET'
    ? send(`${service.url}/users/v1/me`, { headers: { ...credential, ...headers } })
    : send(`${service.url}/auth/v1/register`, {
        method,
        headers: { 'content-type': 'text/plain', ...credential, ...headers },
        body: '{"identityProviderUserId":"user_of_a_browser"}',
      });
const site = (value: string) => ({ 'sec-fetch-site': value });

/** What a browser says of the page that sent a request, and which methods may then use a cookie. */
const cases: [string, () => Record<string, string>, { GET: boolean; POST: boolean }][] = [
  ['no browser', () => ({}), { GET: true, POST: true }],
  ['the same origin', () => ({ ...site('same-origin'), origin: service.url }), { GET: true, POST: true }],
  ['the same origin, told by Origin alone', () => ({ origin: service.url }), { GET: true, POST: true }],
  ['the address bar', () => site('none'), { GET: true, POST: true }],
  ['an authorized party', () => ({ ...site('same-site'), origin: FRONTEND }), { GET: true, POST: true }],
  ['an authorized party, told by Origin alone', () => ({ origin: FRONTEND }), { GET: true, POST: true }],
  [
    'a sibling subdomain',
    () => ({ ...site('same-site'), origin: 'https://blog.example.com' }),
    { GET: true, POST: false },
  ],
  ['a sibling that hides its origin', () => site('same-site'), { GET: true, POST: false }],
  [
    'another site',
    () => ({ ...site('cross-site'), origin: 'https://evil.example' }),
    { GET: false, POST: false },
  ],
  ['another site without Origin', () => site('cross-site'), { GET: false, POST: false }],
  [
    'another site, told by Origin alone',
    () => ({ origin: 'https://evil.example' }),
    { GET: false, POST: false },
  ],
  ['an opaque origin', () => ({ origin: 'null' }), { GET: false, POST: false }],
  ['an origin that is none', () => ({ origin: 'evil' }), { GET: false, POST: false }],
  [
    'a browser that says one and another',
    () => ({ ...site('none'), origin: 'https://evil.example' }),
    { GET: false, POST: false },
  ],
];

test.each([
  ['another frontend', 'https://blog.example.com'],
  ['nobody', undefined],
])('a session that was made for %s is a 401, as bearer and as cookie', async (_whom, azp) => {
  const foreign = tokenFor(service.idp, 'user_of_a_browser', azp === undefined ? {} : { azp });
  for (const credential of [bearer(foreign), cookie(foreign)]) {
    expect((await call('GET', credential, {})).status).toBe(401);
    expect((await call('POST', credential, {})).status).toBe(401);
  }
});

describe('a session cookie does not count where the browser says that a foreign page sent it', () => {
  test.each(cases)('%s', async (_whence, headers, expected) => {
    for (const method of ['GET', 'POST'] as const) {
      // Twice: what is remembered of a credential comes after this.
      for (const _time of [1, 2]) {
        const { status } = await call(method, cookie(token()), headers());
        expect({ method, status }).toEqual({ method, status: expected[method] ? 200 : 401 });
      }
    }
  });

  test('the log says why', async () => {
    await call('POST', cookie(token()), site('cross-site'));
    await expect.poll(() => service.output()).toContain('"reason":"foreign-cookie"');
  });

  test.each(cases)('and a bearer counts always: %s', async (_whence, headers) => {
    for (const method of ['GET', 'POST'] as const) {
      expect((await call(method, bearer(token()), headers())).status).toBe(200);
    }
  });
});

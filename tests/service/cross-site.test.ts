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

/** Headers that describe the origin of a request, and whether a GET and a POST with them may use the session cookie. */
const cases: [string, () => Record<string, string>, { GET: boolean; POST: boolean }][] = [
  ['a client that is not a browser', () => ({}), { GET: true, POST: true }],
  ['the same origin', () => ({ ...site('same-origin'), origin: service.url }), { GET: true, POST: true }],
  ['the same origin without Sec-Fetch-Site', () => ({ origin: service.url }), { GET: true, POST: true }],
  ['the address bar', () => site('none'), { GET: true, POST: true }],
  ['an authorized party', () => ({ ...site('same-site'), origin: FRONTEND }), { GET: true, POST: true }],
  ['an authorized party without Sec-Fetch-Site', () => ({ origin: FRONTEND }), { GET: true, POST: true }],
  [
    'a sibling subdomain',
    () => ({ ...site('same-site'), origin: 'https://blog.example.com' }),
    { GET: true, POST: false },
  ],
  ['a sibling subdomain without Origin', () => site('same-site'), { GET: true, POST: false }],
  [
    'another site',
    () => ({ ...site('cross-site'), origin: 'https://evil.example' }),
    { GET: false, POST: false },
  ],
  ['another site without Origin', () => site('cross-site'), { GET: false, POST: false }],
  [
    'another site without Sec-Fetch-Site',
    () => ({ origin: 'https://evil.example' }),
    { GET: false, POST: false },
  ],
  ['an opaque origin', () => ({ origin: 'null' }), { GET: false, POST: false }],
  ['an invalid origin', () => ({ origin: 'evil' }), { GET: false, POST: false }],
  [
    'a browser with contradictory headers',
    () => ({ ...site('none'), origin: 'https://evil.example' }),
    { GET: false, POST: false },
  ],
];

test.each([
  ['names an unauthorized frontend', 'https://blog.example.com'],
  ['is missing', undefined],
])(
  'A session token whose claim azp (authorized party) %s gets a 401 as a bearer token and as a cookie',
  async (_what, azp) => {
    const foreign = tokenFor(service.idp, 'user_of_a_browser', azp === undefined ? {} : { azp });
    for (const credential of [bearer(foreign), cookie(foreign)]) {
      expect((await call('GET', credential, {})).status).toBe(401);
      expect((await call('POST', credential, {})).status).toBe(401);
    }
  },
);

describe('The origin of a request', () => {
  test.each(cases)(
    'The origin and the method of a request decide whether a session cookie is accepted, even if its session is cached: %s',
    async (_source, headers, expected) => {
      const cached = cookie(token());
      expect((await call('GET', cached, site('same-origin'))).status).toBe(200);
      for (const method of ['GET', 'POST'] as const) {
        for (const credential of [cookie(token()), cached]) {
          const { status } = await call(method, credential, headers());
          expect({ method, status }).toEqual({ method, status: expected[method] ? 200 : 401 });
        }
      }
    },
  );

  test('A cross-site request whose session cookie is rejected is logged with the reason foreign-cookie', async () => {
    await call('POST', cookie(token()), site('cross-site'));
    await expect.poll(() => service.output()).toContain('"reason":"foreign-cookie"');
  });

  test.each(cases)('A bearer token is accepted from every origin: %s', async (_source, headers) => {
    for (const method of ['GET', 'POST'] as const) {
      expect((await call(method, bearer(token()), headers())).status).toBe(200);
    }
  });
});

import { beforeAll, expect, test, vi } from 'vitest';
import { runMiddleware } from '../harness/application';
import { BUILD_TIME_VALUES } from '../harness/build';
import { startProvider } from '../harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY } from '../harness/keys';
import { bearer, cookie, ME, REGISTER, tokenFor } from '../harness/requests';
import { stopAfterAll } from '../vitest/stop-after-all';

const SERVICE = 'http://localhost:3000';
const FRONTEND = 'https://app.example.com';

const idp = stopAfterAll(await startProvider());

beforeAll(() => {
  const variables = {
    ...BUILD_TIME_VALUES,
    IDP_SECRET_KEY: SECRET_KEY,
    IDP_PUBLISHABLE_KEY: PUBLISHABLE_KEY,
    IDP_JWT_KEY: idp.publicKeyPem,
    IDP_AUTHORIZED_PARTIES: FRONTEND,
  };
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  return () => vi.unstubAllEnvs();
});

const token = () => tokenFor(idp, 'user_of_a_browser', { azp: FRONTEND });
/** Returns the verdict of the middleware about a request: the user, or the reason of a rejection. */
async function verdictOf(method: 'GET' | 'POST', headers: Record<string, string>) {
  const { readVerdict } = await import('#lib/idp/verdict');
  const url = `${SERVICE}${method === 'GET' ? ME : REGISTER}`;
  const passed = await runMiddleware(url, { method, headers: { host: 'localhost:3000', ...headers } });
  return readVerdict(passed.headers);
}
const accepted = expect.objectContaining({ user: 'user_of_a_browser' });
const site = (value: string) => ({ 'sec-fetch-site': value });

/** Headers that describe the origin of a request, and whether a GET and a POST with them may use the session cookie. */
const cases: [string, () => Record<string, string>, { GET: boolean; POST: boolean }][] = [
  ['a client that is not a browser', () => ({}), { GET: true, POST: true }],
  ['the same origin', () => ({ ...site('same-origin'), origin: SERVICE }), { GET: true, POST: true }],
  ['the same origin without Sec-Fetch-Site', () => ({ origin: SERVICE }), { GET: true, POST: true }],
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

test.each(cases)(
  'The origin and the method of a request decide whether a session cookie is accepted, even if its session is cached: %s',
  async (_source, headers, expected) => {
    const cached = cookie(token());
    expect(await verdictOf('GET', { ...cached, ...site('same-origin') })).toEqual(accepted);
    for (const method of ['GET', 'POST'] as const)
      for (const credential of [cookie(token()), cached])
        expect(await verdictOf(method, { ...credential, ...headers() }), method).toEqual(
          expected[method] ? accepted : { reason: 'foreign-cookie' },
        );
  },
);

test.each(cases)('A bearer token is accepted from every origin: %s', async (_source, headers) => {
  for (const method of ['GET', 'POST'] as const)
    expect(await verdictOf(method, { ...bearer(token()), ...headers() })).toEqual(accepted);
});

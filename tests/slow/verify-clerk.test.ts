import { existsSync } from 'node:fs';
import { afterEach, expect, test, vi } from 'vitest';
import { connectInstance, removeTestData } from '#lib/doctor/development-instance';
import { checkFacts } from '#lib/doctor/provider-facts';
import { freePort } from '../../dev/system/listen';
import { runCommand, startCommand } from '../harness/commands';
import { startFetchServer } from '../harness/dependencies/stub-server';
import { startProvider } from '../harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY } from '../harness/keys';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';

const emulator = stopAfterAll(await startProvider());
const { users, organizations, memberships } = emulator.store;
const environmentOf = (url: string) => ({
  IDP_SECRET_KEY: SECRET_KEY,
  IDP_PUBLISHABLE_KEY: PUBLISHABLE_KEY,
  CLERK_API_URL: url,
  CLERK_FAPI_URL: url,
});
const rows = () => [users, organizations, memberships].map((table) => table.size());
const NOTHING = [0, 0, 0];
afterEach(() => {
  vi.unstubAllEnvs();
  expect(rows()).toEqual(NOTHING);
});

type Json = Readonly<Record<string, unknown>>;
/** Changes the response to a call. `forward` sends the call to the emulator. */
type Change = (forward: () => Promise<Response>) => Response | Promise<Response>;
const reply =
  (body: unknown, status = 200, headers = {}): Change =>
  () =>
    Response.json(body, { status, headers });
const never: Change = () => new Promise(() => {});
const header =
  (name: string, value: string): Change =>
  async (forward) => {
    const got = await forward();
    got.headers.set(name, value);
    return got;
  };
const body =
  (edit: (body: Json) => unknown): Change =>
  async (forward) => {
    const got = await forward();
    return got.ok ? new Response(JSON.stringify(edit(await got.json())), got) : got;
  };
const claims = (edit: (claims: Json) => Json) =>
  body(({ jwt }) => {
    const [head, payload = '', signature] = String(jwt).split('.');
    const edited = JSON.stringify(edit(JSON.parse(Buffer.from(payload, 'base64url').toString())));
    return { jwt: [head, Buffer.from(edited).toString('base64url'), signature].join('.') };
  });
/** Applies a change to every other call. */
const alternately = (change: Change): Change => {
  let isNext = false;
  return (forward) => {
    isNext = !isNext;
    return isNext ? change(forward) : forward();
  };
};
const allUsers: Change = () =>
  fetch(`${emulator.url}/v1/users`, { headers: { authorization: `Bearer ${SECRET_KEY}` } });

const TOKEN = /^POST \/v1\/sessions\/\w+\/tokens/;
const PAGE_TOKEN = /^POST \/v1\/client\/sessions\/\w+\/tokens/;
const METADATA = /oauth-authorization-server/;
const PATCHED = /^PATCH \/v1\/users\/user_(?!unknown)/;

/** Deviations: the check that differs, the place that relies on it, the call, and what comes instead. */
const DEVIATIONS: readonly (readonly [check: string, place: string, call: RegExp, change: Change])[] = [
  [
    'a session token is valid for 60 s',
    'lib/idp/verdict.ts',
    TOKEN,
    claims((all) => ({ ...all, exp: Number(all['iat']) + 300 })),
  ],
  ['a list of users ignores limit=501', 'lib/idp/backend-api.ts', /limit=501/, reply({ errors: [] }, 422)],
  [
    'a token has the active organization and the role',
    'lib/api/input.ts',
    TOKEN,
    claims(({ o, ...all }) => (Object(o).rol === 'member' ? all : { o, ...all })),
  ],
  [
    'an unknown user gets a 404',
    'lib/idp/backend-api.ts',
    /user_unknown/,
    reply({ error: 'Not found' }, 404),
  ],
  [
    'a taken external_id gets a 422',
    'lib/links/external-ids.ts',
    PATCHED,
    async (forward) => {
      const got = await forward();
      return got.status === 422 ? Response.json({}) : got;
    },
  ],
  ['a list of user ids has only these users', 'lib/idp/backend-api.ts', /users\?user_id=/, allUsers],
  [
    'a session token has the Frontend API as its issuer',
    'lib/base/env.ts',
    TOKEN,
    claims((all) => ({ ...all, iss: 'https://clerk.example.com' })),
  ],
  [
    'the Backend API returns the key of a session token within 4 s',
    'lib/idp/api-session.ts',
    /^GET \/v1\/jwks/,
    never,
  ],
  [
    'a 429 says how many seconds to wait',
    'lib/base/retry.ts',
    /testing_tokens/,
    alternately(reply({}, 429, { 'retry-after': '0' })),
  ],
  [
    'a user has the fields of an event',
    'lib/links/replay.ts',
    /users\?limit=2/,
    body((list) => JSON.parse(JSON.stringify(list).replaceAll('"updated_at"', '"changed_at"'))),
  ],
  [
    'a session token has version 2, a session and a user',
    'lib/idp/verdict.ts',
    TOKEN,
    claims((all) => ({ ...all, v: 1 })),
  ],
  ['the token of a page has its origin', 'middleware.ts', PAGE_TOKEN, claims(({ azp, ...all }) => all)],
  ['a wrong secret key gets a 401', 'lib/idp/backend-api.ts', /^GET \/v1\/users$/, reply([])],
  [
    'a list of organization ids has only these organizations',
    'lib/idp/backend-api.ts',
    /organization_id=/,
    reply({ data: [] }),
  ],
  ['order_by, limit and offset select a page', 'lib/links/paginate.ts', /offset=1/, allUsers],
  ['created_at_after selects later users', 'lib/links/paginate.ts', /created_at_after/, allUsers],
  [
    'external_id: null removes it',
    'lib/links/external-ids.ts',
    PATCHED,
    body((user) => (user['external_id'] === null ? { ...user, external_id: '' } : user)),
  ],
  [
    'after a sign-in, the token has the organization of the session',
    'lib/guard-tenant.ts',
    PAGE_TOKEN,
    claims((all) => ({ ...all, o: { id: 'org_other' } })),
  ],
  ['the next token has a changed role', 'lib/guard-tenant.ts', /^PATCH \/v1\/organizations/, reply({})],
  [
    'the next token of a removed member has no organization',
    'lib/guard-tenant.ts',
    /^DELETE \/v1\/organizations\/\w+\/memberships/,
    reply({}),
  ],
  ['a handshake returns to the page with a session', 'lib/idp/page-session.ts', /handshake\?/, reply({})],
  [
    'the Frontend API is an authorization server with PKCE',
    'lib/protected-resource.ts',
    METADATA,
    body((all) => ({ ...all, code_challenge_methods_supported: ['plain'] })),
  ],
  [
    'a page can read its metadata',
    'lib/protected-resource.ts',
    METADATA,
    header('access-control-allow-origin', 'https://other.example'),
  ],
  ['a revoked session gets no token', 'docs/users.md', /\/revoke$/, reply({})],
  ['the session of a banned user gets no token', 'docs/users.md', /\/ban$/, reply({})],
  [
    'a deleted user is not listed',
    'lib/links/forget-due.ts',
    /users\?limit=100&user_id/,
    reply([{ id: 'deleted' }]),
  ],
];

/** Starts a proxy in front of the emulator that changes responses. */
const startProxy = (deviations: typeof DEVIATIONS) =>
  startFetchServer(async (request) => {
    const { pathname, search } = new URL(request.url);
    const sent = { method: request.method, headers: request.headers, redirect: 'manual' } as const;
    const text = await request.text();
    const forward = async () => {
      const got = await fetch(`${emulator.url}${pathname}${search}`, text ? { ...sent, body: text } : sent);
      const headers = new Headers(got.headers);
      for (const name of ['transfer-encoding', 'content-length']) headers.delete(name);
      const ownUrls = (await got.text()).replaceAll(emulator.url, new URL(request.url).origin);
      return new Response(ownUrls, { status: got.status, headers });
    };
    return deviations
      .filter(([, , call]) => call.test(`${request.method} ${pathname}${search}`))
      .reduce<typeof forward>(
        (next, [, , , change]) =>
          async () =>
            change(next),
        forward,
      )();
  });

test('Against the emulator, every check of verify:clerk is ok or not tried, and nothing is left behind', async () => {
  const { exit, stdout } = await runCommand('verify-clerk', [], environmentOf(emulator.url));
  expect(stdout).toMatch(
    /^25 ok, 0 differ, 3 not tried; @clerk\/backend \d+\.\d+\.\d+, API 2\d{3}-\d\d-\d\d, 2\d{3}-\d\d-\d\d$/m,
  );
  expect(exit).toBe(0);
});

test('verify:clerk names ten deviations of an instance with the places that rely on them, and exits with 1', async () => {
  const ten = DEVIATIONS.slice(0, 10);
  const proxy = stopAfterTest(await startProxy(ten));
  const { exit, stdout } = await runCommand('verify-clerk', ['--json'], environmentOf(proxy.url));
  const checks: Json[] = JSON.parse(stdout).checks.filter(({ status }: Json) => status === 'differs');
  const found = checks.map(({ name, remedy }) => `${name}: ${String(remedy).split(':')[0]}`);
  expect(found.sort()).toEqual(ten.map(([name, place]) => `${name}: ${place}`).sort());
  expect(exit).toBe(1);
});

test.each(DEVIATIONS)(
  'Only the check "%s" differs if the instance deviates there',
  async (name, place, ...call) => {
    const proxy = stopAfterTest(await startProxy([[name, place, ...call]]));
    for (const [variable, value] of Object.entries(environmentOf(proxy.url))) vi.stubEnv(variable, value);
    const { signal } = new AbortController();
    const checks = await checkFacts(connectInstance(signal), new Set(), signal);
    vi.stubEnv('CLERK_API_URL', emulator.url);
    await removeTestData(connectInstance(signal));
    const differing = checks.filter(({ status }) => status === 'failure');
    expect(differing).toEqual([expect.objectContaining({ name, remedy: expect.stringContaining(place) })]);
    expect(existsSync(place)).toBe(true);
  },
);

test('verify:clerk removes what it has created after SIGINT, and what a killed run has left', async () => {
  const proxy = stopAfterTest(await startProxy(DEVIATIONS.filter(([, , call]) => call.test('GET /v1/jwks'))));
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    proxy.calls.length = 0;
    const { child, ended } = startCommand('verify-clerk', [], environmentOf(proxy.url));
    await expect.poll(() => proxy.calls).toContain('GET /v1/jwks');
    expect(rows()).toEqual([2, 1, 2]);
    child.kill(signal);
    expect((await ended).exit).toBe(signal === 'SIGINT' ? 130 : 'SIGKILL');
    if (signal === 'SIGINT') expect(rows()).toEqual(NOTHING);
  }
  const { stderr } = await runCommand('verify-clerk', [], environmentOf(emulator.url));
  expect(stderr).toContain('Removed what an earlier run has left: 3');
});

test.each([
  ['a live key', { IDP_SECRET_KEY: 'sk_live_0123456789' }, 2, 'IDP_SECRET_KEY is not a test key'],
  ['no key', { IDP_PUBLISHABLE_KEY: '' }, 2, 'IDP_PUBLISHABLE_KEY is missing'],
  ['an unreachable provider', environmentOf(`http://127.0.0.1:${await freePort()}`), 1, 'ECONNREFUSED'],
])('With %s, verify:clerk prints one line that says so', async (_case, changes, exit, message) => {
  const result = await runCommand('verify-clerk', [], { ...environmentOf(emulator.url), ...changes });
  expect(result).toEqual({
    exit,
    stdout: '',
    stderr: expect.stringMatching(new RegExp(`^.*${message}.*\n$`)),
  });
});

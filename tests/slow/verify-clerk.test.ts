import { generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { signToken } from 'clerk-emulator/testing';
import { afterEach, expect, test, vi } from 'vitest';
import { at, connectInstance, MARK, removeTestData } from '#lib/clerk/development-instance';
import { checkFacts } from '#lib/clerk/facts';
import { freePort } from '../../dev/system/listen';
import { runCommand, startCommand } from '../harness/commands';
import { startFetchServer } from '../harness/dependencies/stub-server';
import { startProvider } from '../harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY } from '../harness/keys';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';

const emulator = stopAfterAll(await startProvider());
const keys = { IDP_SECRET_KEY: SECRET_KEY, IDP_PUBLISHABLE_KEY: PUBLISHABLE_KEY };
const environmentOf = (url: string) => ({ ...keys, CLERK_API_URL: url, CLERK_FAPI_URL: url });
const { users, organizations, memberships } = emulator.store;
const rows = () => [users, organizations, memberships].map((table) => table.size());
afterEach(() => {
  vi.unstubAllEnvs();
  expect(rows()).toEqual([0, 0, 0]);
});

type Json = Readonly<Record<string, unknown>>;
/** Changes the response to a call. `forward` sends the call to the emulator. */
type Change = (forward: () => Promise<Response>) => Response | Promise<Response>;
const reply = (body: unknown, init?: ResponseInit) => () => Response.json(body, init);
const edit =
  (change: (body: Json) => unknown): Change =>
  async (forward) => {
    const got = await forward();
    return got.ok ? new Response(JSON.stringify(change(await got.json())), got) : got;
  };
const claims = (change: (claims: Json) => Json) =>
  edit(({ jwt }) => {
    const payload = Buffer.from(String(jwt).split('.')[1] ?? '', 'base64url').toString();
    return { jwt: signToken(emulator, change(JSON.parse(payload))) };
  });
let calls = 0;
const limitRate: Change = (forward) => {
  calls += 1;
  return calls % 2 ? Response.json({}, { status: 429, headers: { 'retry-after': '0' } }) : forward();
};

const TOKEN = /^POST \/v1\/sessions\/\w+\/tokens/;
const PAGE_TOKEN = /^POST \/v1\/client\/sessions\/\w+\/tokens/;
const PATCH = /^PATCH \/v1\/users\/user_(?!unknown)/;
const JWKS = /^GET \/v1\/jwks/;
const METADATA = /oauth-authorization-server/;
const unfiltered = reply([{ id: 'user_1' }, { id: 'user_2' }]);
const isMember = ({ o }: { readonly o?: { readonly rol?: string } }) => o?.rol === 'member';

/** Deviations of an instance, by the check that notices them: the call, and the change of its response. */
const DEVIATIONS: Readonly<Record<string, readonly [call: RegExp, change: Change]>> = {
  'a session token is valid for 60 s': [TOKEN, claims((all) => ({ ...all, exp: Number(all['iat']) + 300 }))],
  'a list of users ignores limit=501': [/limit=501/, reply({ errors: [] }, { status: 422 })],
  'a token has the active organization and the role': [
    TOKEN,
    claims((all) => (isMember(all) ? { ...all, o: undefined } : all)),
  ],
  'an unknown user gets a 404': [/user_unknown/, reply({ error: 'Not found' }, { status: 404 })],
  'a taken external_id gets a 422': [PATCH, async (forward) => new Response((await forward()).body)],
  'a list of user ids has only these users': [/users\?user_id=/, unfiltered],
  'a session token has the Frontend API as its issuer': [TOKEN, claims((all) => ({ ...all, iss: 'other' }))],
  'the Backend API returns the key of a session token within 4 s': [JWKS, () => new Promise(() => {})],
  'a 429 says how many seconds to wait': [/testing_tokens/, limitRate],
  'a user has the fields of an event': [/users\?limit=2/, reply([{ id: 'user_1', external_id: null }])],
  'a session token has version 2, a session and a user': [TOKEN, claims((all) => ({ ...all, v: 1 }))],
  'the token of a page has its origin': [PAGE_TOKEN, claims((all) => ({ ...all, azp: undefined }))],
  'a wrong secret key gets a 401': [/^GET \/v1\/users$/, reply([])],
  'a list of organization ids has only these organizations': [/organization_id=/, reply({ data: [] })],
  'order_by, limit and offset select a page': [/offset=1/, unfiltered],
  'created_at_after selects later users': [/created_at_after/, unfiltered],
  'external_id: null removes it': [PATCH, edit((user) => ({ ...user, external_id: 'kept' }))],
  'after a sign-in, the token has the organization of the session': [
    PAGE_TOKEN,
    claims((all) => ({ ...all, o: { id: 'org_other' } })),
  ],
  'the next token has a changed role': [/^PATCH \/v1\/organizations/, reply({})],
  'the next token of a removed member has no organization': [/^DELETE .*\/memberships/, reply({})],
  'a handshake returns to the page with a session': [/handshake\?/, reply({})],
  'the Frontend API is an authorization server with PKCE': [
    METADATA,
    edit((all) => ({ ...all, code_challenge_methods_supported: ['plain'] })),
  ],
  'a page can read its metadata': [
    METADATA,
    async (forward) => Response.json(await (await forward()).json()),
  ],
  'a revoked session gets no token': [/\/revoke$/, reply({})],
  'the session of a banned user gets no token': [/\/ban$/, reply({})],
  'a deleted user is not listed': [/users\?limit=100&user_id/, unfiltered],
};

/** Starts a proxy in front of the emulator with these deviations. */
async function startProxy(names: readonly string[], ...more: readonly (readonly [RegExp, Change])[]) {
  const deviations = [...names.flatMap((name) => [DEVIATIONS[name] ?? []]), ...more];
  const proxy = await startFetchServer(async (request) => {
    const { pathname, search, origin } = new URL(request.url);
    const { method, headers } = request;
    const body = (await request.text()) || null;
    const forward = async () => {
      const url = `${emulator.url}${pathname}${search}`;
      const got = await fetch(url, { method, headers, body, redirect: 'manual' });
      const kept = [...got.headers].filter(([name]) => !/^(?:transfer-encoding|content-length)$/.test(name));
      const text = (await got.text()).replaceAll(emulator.url, origin);
      return new Response(text, { status: got.status, headers: kept });
    };
    return deviations
      .filter(([call]) => call?.test(`${method} ${pathname}${search}`))
      .reduce(
        (next, [, change]) =>
          async () =>
            change ? change(next) : next(),
        forward,
      )();
  });
  return stopAfterTest(proxy);
}

test('Against the emulator, every check of verify:clerk is ok or skipped, and nothing is left behind', async () => {
  const { exit, stdout } = await runCommand('verify-clerk', [], environmentOf(emulator.url));
  const versions = '@clerk/backend \\d+\\.\\d+\\.\\d+, API 2\\d{3}-\\d\\d-\\d\\d, date 2\\d{3}-\\d\\d-\\d\\d';
  expect(stdout).toMatch(new RegExp(`\\n\\n25 ok, 0 warnings, 0 failed, 3 skipped, ${versions}\\n$`));
  expect(exit).toBe(0);
});

test('verify:clerk names the deviations with the places that rely on them, and exits with 1', async () => {
  const { url } = await startProxy(['a session token is valid for 60 s', 'an unknown user gets a 404']);
  const { exit, stdout } = await runCommand('verify-clerk', ['--json'], environmentOf(url));
  const checks: Json[] = JSON.parse(stdout).checks;
  const differing = checks.filter(({ status }) => status === 'failure');
  expect(differing.map(({ name, remedy }) => [name, String(remedy).split(':')[0]])).toEqual([
    ['a session token is valid for 60 s', 'lib/clerk/verdict.ts'],
    ['an unknown user gets a 404', 'lib/clerk/backend-api.ts'],
  ]);
  expect(exit).toBe(1);
});

/** Returns the checks that differ at an address. */
async function differingAt(url: string) {
  for (const [variable, value] of Object.entries(environmentOf(url))) vi.stubEnv(variable, value);
  const { signal } = new AbortController();
  const checks = await checkFacts(connectInstance(signal), signal);
  await removeTestData(connectInstance(signal));
  return checks.filter(({ status }) => status === 'failure');
}

test.each(Object.keys(DEVIATIONS))(
  'Only the check "%s" differs if the instance deviates there',
  async (name) => {
    const differing = await differingAt((await startProxy([name])).url);
    expect(differing.map((check) => check.name)).toEqual([name]);
    for (const place of differing[0]?.remedy?.match(/[\w/.-]+\.(?:ts|md)/g) ?? [])
      expect(existsSync(place)).toBe(true);
  },
);

const endless = () =>
  new Response(new ReadableStream({ pull: (stream) => stream.enqueue(new Uint8Array(65_536)) }));
const { n, e } = generateKeyPairSync('rsa', { modulusLength: 2_048 }).publicKey.export({ format: 'jwk' });

test.each<[what: string, change: Change, reason: string]>([
  [
    'another key under the same id',
    edit(({ keys }) => ({ keys: [{ kty: 'RSA', kid: at(keys, 0, 'kid'), n, e }] })),
    'ERR_JWS_SIGNATURE_VERIFICATION_FAILED',
  ],
  ['a body without an end', endless, 'no response (Payload too large)'],
])('verify:clerk notices %s', async (_what, change, reason) => {
  const [differing, ...others] = await differingAt((await startProxy([], [JWKS, change])).url);
  expect(differing).toMatchObject({
    name: 'the Backend API returns the key of a session token within 4 s',
    message: expect.stringContaining(reason),
  });
  expect(others).toEqual([]);
});

test('verify:clerk sends no DELETE to a path that an id in a response would change', async () => {
  const email_address = `${MARK}1+clerk_test@example.com`;
  const user = { id: '../organizations/org_x?', email_addresses: [{ email_address }] };
  const { url, calls } = await startProxy([], [/users\?limit=100&query/, reply([user])]);
  for (const [variable, value] of Object.entries(environmentOf(url))) vi.stubEnv(variable, value);
  expect(await removeTestData(connectInstance(new AbortController().signal))).toBe(0);
  expect(calls.filter((call) => call.startsWith('DELETE'))).toEqual([]);
});

test('verify:clerk removes a user whose creation got no response', async () => {
  const lost: Change = async (forward) => new Response((await forward()) && null, { status: 500 });
  const { url } = await startProxy([], [/^POST \/v1\/users$/, lost]);
  expect(await runCommand('verify-clerk', [], environmentOf(url))).toMatchObject({ exit: 1 });
});

test('verify:clerk removes what it has created, also if the search does not find it yet', async () => {
  const { url } = await startProxy([], [/limit=100&query/, reply([])]);
  expect(await runCommand('verify-clerk', [], environmentOf(url))).toMatchObject({ exit: 0 });
});

test('verify:clerk removes what it has created after SIGINT, and what a killed run has left', async () => {
  const { url, calls } = await startProxy(['the Backend API returns the key of a session token within 4 s']);
  for (const [signal, exit, left] of [
    ['SIGINT', 130, [0, 0, 0]],
    ['SIGKILL', 'SIGKILL', [2, 1, 2]],
  ] as const) {
    calls.length = 0;
    const { child, ended } = startCommand('verify-clerk', [], environmentOf(url));
    await expect.poll(() => calls).toContain('GET /v1/jwks');
    expect(rows()).toEqual([2, 1, 2]);
    child.kill(signal);
    expect((await ended).exit).toBe(exit);
    expect(rows()).toEqual(left);
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

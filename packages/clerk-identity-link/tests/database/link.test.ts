import { NextRequest } from 'next/server';
import { afterEach, expect, test, vi } from 'vitest';
import { OLD_SIGNING_SECRET, SIGNING_SECRET } from '../../../../tests/harness/keys';
import { signatureHeaders, userCreated } from '../../../../tests/harness/requests';
import { identityLink, type LinkTable } from '../../src';
import { nextLink } from '../../src/next';
import { CLIENTS, clerk, createUser, failures, onError } from './clients';

const session = vi.hoisted(() => ({ current: {} }));
vi.mock('@clerk/nextjs/server', () => ({
  auth: async () => session.current,
  clerkClient: async () => clerk,
}));
vi.mock('next/headers', () => ({ headers: async () => new Headers() }));
afterEach(() => {
  vi.unstubAllEnvs();
  onError.mockClear();
});

const { guard, webhook } = nextLink(
  {
    users: CLIENTS.Drizzle({ columns: async () => ({}), onCreated: () => Promise.reject(new Error('mail')) }),
  },
  { onError, authorizedParties: ['https://party.example'] },
);
const GET = guard((_request, caller) => Response.json(caller));
/** Sends a request with the session of a user to a guarded route. */
async function visit(userId: string, headers = {}, route = GET) {
  session.current = { userId, sessionId: 'sess_1', sessionClaims: { iat: 1 } };
  return route(new NextRequest('https://own.example/me', { headers }), { params: Promise.resolve({}) });
}
/** Delivers a body to a webhook with a signature. */
function deliver(route: ReturnType<typeof webhook>, body: string, secret = SIGNING_SECRET) {
  const headers = signatureHeaders(body, { secret });
  return route(new Request('https://own.example/clerk', { method: 'POST', body, headers }));
}

test('Two links in one process, also in Next.js, register in their own tables at the same time, and report to their own onError', async () => {
  const links = ['one', 'other'].map((name) => {
    const [client, report] = [{ ...clerk }, vi.fn()];
    const insert: LinkTable['insert'] = async (_id, surroundings) =>
      (await surroundings.clerk()) === client ? name : 'the client of another link';
    const users = { find: async () => undefined, insert, exists: async () => true };
    const core = identityLink({ users }, { clerk: client, onError: report });
    return { core, report, ofNext: nextLink(core) };
  });
  const ids = links.flatMap(({ core, ofNext }) => [
    core.register('user_2').then((registered) => registered?.userId),
    visit(
      'user_1',
      {},
      ofNext.guard(async (_request, { userId }) => Response.json(userId)),
    ).then((response) => response.json()),
  ]);
  expect(await Promise.all(ids)).toEqual(['one', 'one', 'other', 'other']);
  const failing = links[0]?.ofNext.guard(() => Promise.reject(new Error('of a handler')));
  expect((await visit('user_1', {}, failing)).status).toBe(500);
  const reports = links.map(({ report }) => report.mock.calls);
  expect(reports).toEqual([[[new Error('of a handler'), 'GET /me']], []]);
});

test('An HttpError of another copy of the package sets the status and the headers of a route and of a webhook', async () => {
  vi.resetModules();
  const { HttpError } = await import('../../src');
  const fail = () => Promise.reject(new HttpError(429, 'Later', { 'retry-after': '7' }));
  vi.stubEnv('CLERK_WEBHOOK_SIGNING_SECRET', SIGNING_SECRET);
  for (const response of [
    await visit(createUser().id, {}, guard(fail)),
    await deliver(webhook({ 'user.updated': fail }), '{"type":"user.updated","data":{}}'),
  ]) {
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7']);
    expect(await response.json()).toEqual({ message: 'Later' });
  }
});

test('A registration is repeated after a lost race, also with the bare error of pg that Drizzle wraps since 0.44', async () => {
  const bare = Object.assign(new Error('lost'), { code: '40001' });
  const insert = vi
    .fn()
    .mockRejectedValueOnce(bare)
    .mockRejectedValueOnce(new Error('query', { cause: bare }));
  const users = {
    find: async () => undefined,
    insert: insert.mockResolvedValue('id'),
    exists: async () => true,
  };
  expect(await identityLink({ users }).register('user_1')).toEqual({ userId: 'id', created: true });
});

test('The cookies of a request from an origin of authorizedParties are a credential, and those of another origin or site are not', async () => {
  const statuses = [
    { origin: 'https://party.example' },
    { 'sec-fetch-site': 'same-origin' },
    { origin: 'https://other.example' },
    { 'sec-fetch-site': 'cross-site' },
  ].map(
    async (headers) => (await visit(createUser().id, { ...headers, cookie: '__session=ey.ey.ey' })).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 200, 401, 401]);
});

test('A 429 and a 500 of Clerk are a 503 with retry-after. An error of onCreated goes to onError, and the request goes on', async () => {
  const { id } = createUser();
  for (const status of [429, 500]) {
    failures.push(Response.json({ errors: [] }, { status, headers: { 'retry-after': '7' } }));
    const limited = await visit(id);
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([503, '7']);
    expect(onError).toHaveBeenLastCalledWith(expect.objectContaining({ status }), 'Clerk');
  }
  expect((await visit(id)).status).toBe(200);
  expect(onError).toHaveBeenLastCalledWith(new Error('mail'), 'onCreated');
});

test('A webhook accepts each of several signing secrets, and ignores an empty variable. A value that is not a secret is an error', async () => {
  const statusOf = async (secret: string) => (await deliver(webhook(), userCreated(''), secret)).status;
  for (const separator of [' ', ', ']) {
    vi.stubEnv('CLERK_WEBHOOK_SIGNING_SECRET', [OLD_SIGNING_SECRET, SIGNING_SECRET].join(separator));
    expect([await statusOf(OLD_SIGNING_SECRET), await statusOf(SIGNING_SECRET)]).toEqual([200, 200]);
    expect(await statusOf(SIGNING_SECRET.replace('Y', 'Z'))).toBe(400);
  }
  vi.stubEnv('CLERK_WEBHOOK_SIGNING_SECRET', '');
  vi.stubEnv('CLERK_WEBHOOK_SECRET', SIGNING_SECRET);
  expect([await statusOf(SIGNING_SECRET), onError.mock.calls]).toEqual([200, []]);
  for (const value of ['', 'whsec_short']) {
    vi.stubEnv('CLERK_WEBHOOK_SECRET', value);
    expect(await statusOf(SIGNING_SECRET)).toBe(500);
    expect(String(onError.mock.lastCall)).toMatch(/CLERK_WEBHOOK_SIGNING_SECRET.*,POST \/clerk$/);
  }
});

import { NextRequest } from 'next/server';
import { afterEach, expect, test, vi } from 'vitest';
import { OLD_SIGNING_SECRET, SIGNING_SECRET } from '../../../../tests/harness/keys';
import { signatureHeaders, userCreated } from '../../../../tests/harness/requests';
import { nextLink } from '../../src/next';
import { CLIENTS, calls, clerk, createUser, database, failures, onError } from './clients';

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
    users: CLIENTS.Drizzle({
      columns: async () => ({}),
      onCreated: () => Promise.reject(new Error('mail')),
    }),
  },
  { onError, authorizedParties: ['https://party.example'] },
);
const GET = guard((_request, caller) => Response.json(caller));
/** Sends a request with the session of a user to a guarded route. */
function visit(userId: string, headers = {}) {
  session.current = { userId, sessionId: 'sess_1', sessionClaims: { iat: 1 } };
  return GET(new NextRequest('https://own.example/me', { headers }), { params: Promise.resolve({}) });
}

test('The cookies of a request from an origin of authorizedParties are a credential, and those of another origin are not', async () => {
  for (const [origin, status] of Object.entries({
    'https://party.example': 200,
    'https://other.example': 401,
  }))
    expect((await visit(createUser().id, { origin, cookie: '__session=ey.ey.ey' })).status).toBe(status);
});

test('A guarded route returns 401 for a user without a row or with an excluded row, after at most one call to Clerk', async () => {
  const [unknown, excluded] = [`user_${crypto.randomUUID()}`, createUser().id];
  await database.pool.query('INSERT INTO "User" ("clerkId", "deletedAt") VALUES ($1, now())', [excluded]);
  for (const id of [unknown, unknown, excluded]) expect((await visit(id)).status).toBe(401);
  expect([calls(unknown), calls(excluded)]).toEqual([1, 0]);
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
  async function deliver(secret: string) {
    const body = userCreated('');
    const headers = signatureHeaders(body, { secret });
    return (await webhook()(new Request('https://own.example/clerk', { method: 'POST', body, headers })))
      .status;
  }
  for (const separator of [' ', ', ']) {
    vi.stubEnv('CLERK_WEBHOOK_SIGNING_SECRET', [OLD_SIGNING_SECRET, SIGNING_SECRET].join(separator));
    expect([await deliver(OLD_SIGNING_SECRET), await deliver(SIGNING_SECRET)]).toEqual([200, 200]);
    expect(await deliver(SIGNING_SECRET.replace('Y', 'Z'))).toBe(400);
  }
  vi.stubEnv('CLERK_WEBHOOK_SIGNING_SECRET', '');
  vi.stubEnv('CLERK_WEBHOOK_SECRET', SIGNING_SECRET);
  expect([await deliver(SIGNING_SECRET), onError.mock.calls]).toEqual([200, []]);
  for (const value of ['', 'whsec_short']) {
    vi.stubEnv('CLERK_WEBHOOK_SECRET', value);
    expect(await deliver(SIGNING_SECRET)).toBe(500);
    expect(String(onError.mock.lastCall)).toMatch(/CLERK_WEBHOOK_SIGNING_SECRET.*,POST \/clerk$/);
  }
});

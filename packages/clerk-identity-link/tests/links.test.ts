import { NextRequest } from 'next/server';
import { Webhook } from 'svix';
import { expect, test, vi } from 'vitest';
import { type ClerkClient, identityLink, type LinkTable } from '../src/index';
import { nextLink } from '../src/next';

vi.mock('@clerk/nextjs/server', () => ({
  auth: async () => ({ userId: 'user_1', sessionId: 'sess_1', sessionClaims: {} }),
  clerkClient: () => Promise.reject(new Error('This is not the client of the core')),
}));

/** A table in memory. */
function memoryTable(name: string, pause = Promise.resolve()): LinkTable {
  const rows = new Map<string, string>();
  return {
    find: async (clerkId) => rows.get(clerkId),
    async insert(clerkId, { clerk }) {
      await pause;
      await clerk();
      if (rows.has(clerkId)) return undefined;
      rows.set(clerkId, `${name} ${rows.size + 1}`);
      return rows.get(clerkId);
    },
    exists: async () => true,
  };
}
const never = () => Promise.reject(new Error('unused'));
const clerk: ClerkClient = { users: { getUser: never }, organizations: { getOrganization: never } };
const request = () =>
  new NextRequest('https://localhost/me', { headers: { authorization: 'Bearer ey.ey.ey' } });
const context = { params: Promise.resolve({}) };

test('Two links in one process, also in Next.js, register in their own tables at the same time, and report to their own onError', async () => {
  let release = () => {};
  const pause = new Promise<void>((resolve) => (release = resolve));
  const links = ['one', 'other'].map((name) => {
    const onError = vi.fn();
    const core = identityLink({ users: memoryTable(name, pause) }, { clerk, onError });
    return { core, onError, ofNext: nextLink(core) };
  });
  const results = links.map(({ core }) => core.register('user_2'));
  const responses = links.map(({ ofNext }) =>
    ofNext.guard(async (_request, { userId }) => Response.json(userId))(request(), context),
  );
  release();
  expect(await Promise.all(results)).toEqual([
    { userId: expect.stringMatching(/^one /), created: true },
    { userId: expect.stringMatching(/^other /), created: true },
  ]);
  expect(await Promise.all(responses.map(async (response) => (await response).json()))).toEqual([
    expect.stringMatching(/^one /),
    expect.stringMatching(/^other /),
  ]);
  const failing = links[0]?.ofNext.guard(() => Promise.reject(new Error('of a handler')));
  expect((await failing?.(request(), context))?.status).toBe(500);
  expect(links.map(({ onError }) => onError.mock.calls)).toEqual([
    [[new Error('of a handler'), 'GET /me']],
    [],
  ]);
});

test('An HttpError of another copy of the package sets the status and the headers of a route and of a webhook', async () => {
  vi.resetModules();
  const { HttpError } = await import('../src/index');
  const fail = () => Promise.reject(new HttpError(429, 'Later', { 'retry-after': '7' }));
  const { guard, webhook } = nextLink(identityLink({ users: memoryTable('users') }, { clerk }));
  const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
  vi.stubEnv('CLERK_WEBHOOK_SIGNING_SECRET', secret);
  const [body, now] = ['{"type":"user.updated","data":{}}', new Date()];
  const headers = {
    'svix-id': 'msg_1',
    'svix-timestamp': String(Math.floor(now.getTime() / 1_000)),
    'svix-signature': new Webhook(secret).sign('msg_1', now, body),
  };
  for (const response of [
    await guard(fail)(request(), context),
    await webhook({ 'user.updated': fail })(
      new Request('https://localhost/', { method: 'POST', headers, body }),
    ),
  ])
    expect([response.status, response.headers.get('retry-after'), await response.json()]).toEqual([
      429,
      '7',
      { message: 'Later' },
    ]);
});

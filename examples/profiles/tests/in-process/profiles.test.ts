import { NextRequest } from 'next/server';
import { renderToStaticMarkup } from 'react-dom/server';
import { beforeEach, expect, test, vi } from 'vitest';
import { PAGE_PATH, signVerdict, VERDICT } from '#lib/idp/verdict';
import { startProvider } from '../harness/identity-provider';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { inParallel } from '../harness/parallel';
import { HOOK, signatureHeaders } from '../harness/requests';
import { stopAfterTest } from '../vitest/stop-after-all';

const page = vi.hoisted(() => ({ headers: new Headers() }));
vi.mock('next/headers', () => ({ headers: async () => page.headers }));

const { database } = await startInProcess();
const { pool } = database;
const {
  backfill,
  default: ProfilePage,
  events,
  exportOwnTables,
  POST,
} = await importAsProcess(async () => ({
  ...(await import('#events')),
  ...(await import('../../events/export-user')),
  ...(await import('../../app/profile/page')),
  ...(await import('../../app/webhooks/idp/v1/user-created/route')),
  ...(await import('#lib/users/backfill')),
}));

const user = (id: string, first_name: string, updated_at: number) => ({
  ...{ id, first_name, updated_at, last_name: 'Lovelace', image_url: null },
  primary_email_address_id: 'idn_1',
  email_addresses: [{ id: 'idn_1', email_address: 'ada@example.com' }],
});
async function deliver(type: string, data: object) {
  const body = JSON.stringify({ type, data });
  const init = { method: 'POST', headers: signatureHeaders(body), body };
  const request = new NextRequest(`http://localhost${HOOK}`, init);
  return (await POST(request, { params: Promise.resolve({}) })).status;
}

beforeEach(() => pool.query('TRUNCATE users CASCADE'));

test("The page shows the user's stored profile without a call to the provider, and the actor of an impersonated session", async () => {
  const fetching = vi.spyOn(globalThis, 'fetch');
  const open = async (actor?: { readonly id: string }) => {
    const verdict = signVerdict({ user: 'user_ada', actor });
    page.headers = new Headers({ [PAGE_PATH]: '/profile', [VERDICT]: verdict });
    return renderToStaticMarkup(await ProfilePage());
  };
  expect(await open()).toContain('Your profile is not here yet.');
  expect(await deliver('user.created', user('user_ada', 'Ada', 1_000))).toBe(200);
  expect(await open()).toBe('<div class="shell"><h1>Ada Lovelace</h1><p>ada@example.com</p></div>');
  expect(await open({ id: 'user_support' })).toContain('<p>Shown to user_support</p>');
  expect(fetching).not.toHaveBeenCalled();
  fetching.mockRestore();
});

test('`users export` prints the profile of a user', async () => {
  await deliver('user.created', user('user_ada', 'Ada', 1_000));
  const [row] = await database.rowsOf('user_ada');
  const ids = { identityProviderUserId: 'user_ada', previousIds: [] };
  expect(await exportOwnTables({ ...ids, userId: row?.id })).toEqual({
    profile: {
      ...{
        userId: row?.id,
        email: 'ada@example.com',
        firstName: 'Ada',
        lastName: 'Lovelace',
        imageUrl: null,
      },
    },
  });
  expect(await exportOwnTables({ ...ids, userId: undefined })).toEqual({});
});

test('A repeated replay of 510 users stores the newest profile of each, despite rate limits and live deliveries at the same time', async () => {
  const provider = stopAfterTest(await startProvider());
  vi.stubEnv('CLERK_API_URL', provider.url);
  const template = provider.createUser({ email: 'ada@example.com' });
  provider.deleteUser(template.id);
  const ids = Array.from({ length: 510 }, (_, index) => `user_${index}`);
  for (const [index, id] of ids.entries())
    provider.store.users.put({
      ...template,
      ...{ id, firstName: 'Replayed', createdAt: 1_000 + index, updatedAt: 5_000 },
    });
  const linked = ids.slice(0, 60);
  await pool.query('INSERT INTO users SELECT gen_random_uuid(), unnest($1::text[])', [linked]);
  const waits: string[] = [];
  const replay = async () => {
    const retryOptions = {
      seconds: 60,
      onWait: (reason: string) => waits.push(reason),
      sleep: async () => undefined,
    };
    for await (const { failed } of backfill({ replay: events['user.updated'], retryOptions })) {
      expect(failed).toEqual([]);
      provider.failures.add({ operation: 'GET /v1/users', status: 429 });
    }
  };
  const live = inParallel(4, linked, async (id) => {
    const data = linked.indexOf(id) % 2 === 0 ? user(id, 'Newer', 6_000) : user(id, 'Older', 4_000);
    expect(await deliver('user.updated', data)).toBe(200);
  });
  await Promise.all([live, replay()]);
  await replay();
  expect(waits.length).toBeGreaterThanOrEqual(2);
  const { rows } = await pool.query(
    'SELECT first_name AS name, count(*)::int FROM profiles WHERE email IS NOT NULL GROUP BY 1 ORDER BY 1',
  );
  expect(rows).toEqual([
    { name: 'Newer', count: 30 },
    { name: 'Replayed', count: 480 },
  ]);
}, 120_000);

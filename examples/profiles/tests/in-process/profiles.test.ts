import { renderToStaticMarkup } from 'react-dom/server';
import { beforeEach, expect, test, vi } from 'vitest';
import { PAGE_PATH, signVerdict, VERDICT } from '#lib/idp/verdict';
import { startProvider } from '../harness/identity-provider';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { inParallel } from '../harness/parallel';
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
  linkMany,
} = await importAsProcess(async () => ({
  ...(await import('#events')),
  ...(await import('../../events/export-user')),
  ...(await import('../../app/profile/page')),
  ...(await import('#lib/users/backfill')),
}));

/** Runs the handler of `user.updated` as a webhook does. */
const update = (id: string, first_name: string, updated_at: number) =>
  events['user.updated']?.(
    {
      ...{ id, first_name, updated_at, last_name: 'Lovelace', primary_email_address_id: 'idn_1' },
      email_addresses: [{ id: 'idn_1', email_address: 'ada@example.com' }],
    },
    { messageId: `live:${id}`, occurredAt: updated_at },
  );

beforeEach(() => pool.query('TRUNCATE users, webhook_messages CASCADE'));

test("The page shows the user's stored profile without a call to the provider, and the actor of an impersonated session", async () => {
  const fetching = vi.spyOn(globalThis, 'fetch');
  const open = async (actor?: { readonly id: string }) => {
    const verdict = signVerdict({ user: 'user_ada', actor });
    page.headers = new Headers({ [PAGE_PATH]: '/profile', [VERDICT]: verdict });
    return renderToStaticMarkup(await ProfilePage());
  };
  expect(await open()).toContain('Your profile is not here yet.');
  await update('user_ada', 'Ada', 1_000);
  expect(await open()).toBe('<div class="shell"><h1>Ada Lovelace</h1><p>ada@example.com</p></div>');
  expect(await open({ id: 'user_support' })).toContain('<p>Shown to user_support</p>');
  expect(fetching).not.toHaveBeenCalled();
  fetching.mockRestore();
  const [row] = await database.rowsOf('user_ada');
  const user = { userId: row?.id, identityProviderUserId: 'user_ada', previousIds: [] };
  expect(await exportOwnTables(user)).toMatchObject({ profile: { firstName: 'Ada' } });
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
  await linkMany(linked);
  const replay = async () => {
    const retryOptions = { seconds: 60, sleep: async () => undefined };
    for await (const page of backfill({ replay: events['user.updated'], retryOptions })) {
      expect(page.filter(({ reason }) => reason !== undefined)).toEqual([]);
      provider.failures.add({ operation: 'GET /v1/users', status: 429 });
    }
  };
  const live = inParallel(4, linked, async (id) => {
    await (linked.indexOf(id) % 2 === 0 ? update(id, 'Newer', 6_000) : update(id, 'Older', 4_000));
  });
  await Promise.all([live, replay()]);
  await replay();
  const { rows } = await pool.query(
    'SELECT first_name AS name, count(*)::int FROM profiles WHERE email IS NOT NULL GROUP BY 1 ORDER BY 1',
  );
  expect(rows).toEqual([
    { name: 'Newer', count: 30 },
    { name: 'Replayed', count: 480 },
  ]);
}, 120_000);

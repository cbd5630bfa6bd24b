import { renderToStaticMarkup } from 'react-dom/server';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
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
  closeDatabase,
  default: ProfilePage,
  events,
  exportOwnTables,
  linkMany,
} = await importAsProcess(async () => ({
  ...(await import('#events')),
  ...(await import('#lib/tables/export-user')),
  ...(await import('../../app/profile/page')),
  ...(await import('#lib/operator/backfill')),
  ...(await import('#lib/storage/database')),
}));

let messages = 0;
/** Runs the handler of `user.updated` as a webhook does. */
function update(id: string, first_name: string, updated_at: number) {
  messages += 1;
  return events['user.updated']?.(
    {
      id,
      first_name,
      updated_at,
      last_name: 'Lovelace',
      image_url: 'https://img.example/1',
      primary_email_address_id: 'idn_2',
      email_addresses: [
        { id: 'idn_1', email_address: 'old@example.com' },
        { id: 'idn_2', email_address: 'ada@example.com' },
      ],
    },
    { messageId: `msg_${messages}`, occurredAt: updated_at },
  );
}
const firstNames = async () => (await pool.query('SELECT first_name FROM profiles')).rows.map(Object.values);

// The role has the privileges of docs/deploy.md that the handler needs, and may not delete profiles.
beforeAll(async () => {
  await closeDatabase();
  const { url } = await database.createRole(`GRANT SELECT, INSERT ON users TO $role;
    GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_messages, webhook_subjects TO $role;
    GRANT SELECT, INSERT, UPDATE ON profiles TO $role`);
  vi.stubEnv('DATABASE_URL', url);
});
beforeEach(() =>
  pool
    .query('TRUNCATE users, forgotten_users, webhook_messages, webhook_subjects CASCADE')
    .then(() => undefined),
);

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
  const [userId] = await database.idsOf('user_ada');
  const user = { userId, identityProviderUserId: 'user_ada', previousIds: [] };
  expect(await exportOwnTables(user)).toMatchObject({ profile: { firstName: 'Ada' } });
});

test('An event overwrites the profile of an older event or of an event with the same time, but not the profile of a newer event', async () => {
  await database.link('user_ada');
  for (const [name, time, stored] of [
    ['first', 1_000, 'first'],
    ['third', 3_000, 'third'],
    ['second', 2_000, 'third'],
    ['third again', 3_000, 'third again'],
  ] as const) {
    await update('user_ada', name, time);
    expect(await firstNames()).toEqual([[stored]]);
  }
});

test('After concurrent events of a user, the profile of the newest event is stored', async () => {
  await database.link('user_ada');
  await Promise.all([4, 8, 1, 7, 2, 6, 3, 5].map((time) => update('user_ada', String(time), time)));
  expect(await firstNames()).toEqual([['8']]);
});

test('A profile has the names, the image and the primary address of the user. Two users may have one address', async () => {
  const users = ['user_ada', 'user_eve'];
  await database.link(...users);
  for (const id of users) await update(id, id, 1_000);
  const { rows } = await pool.query('SELECT * FROM profiles ORDER BY first_name');
  expect(rows).toMatchObject(
    users.map((first_name) => ({
      first_name,
      last_name: 'Lovelace',
      email: 'ada@example.com',
      image_url: 'https://img.example/1',
    })),
  );
});

test('The profile of a forgotten user is not stored, unless the user is linked again', async () => {
  await database.markForgotten('user_ada');
  await update('user_ada', 'Ada', 1_000);
  expect(await firstNames()).toEqual([]);
  await database.link('user_ada');
  await update('user_ada', 'Ada', 2_000);
  expect(await firstNames()).toEqual([['Ada']]);
});

test('An event with a previous id updates the profile of the user until the id expires', async () => {
  await database.link('user_ada');
  await pool.query(
    `INSERT INTO previous_ids SELECT 'user_old', id, 'user_ada', 'run', now() + interval '1 day' FROM users`,
  );
  await update('user_old', 'second', 2_000);
  await pool.query('UPDATE previous_ids SET expires_at = now()');
  await update('user_old', 'third', 3_000);
  expect(await firstNames()).toEqual([['second']]);
});

test('An event of a user that is not linked yet fails, so that the provider repeats its delivery', async () => {
  await expect(update('user_ada', 'Ada', 1_000)).rejects.toThrow('not linked yet');
  await database.link('user_ada');
  await update('user_ada', 'Ada', 1_000);
  expect(await firstNames()).toEqual([['Ada']]);
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
      id,
      firstName: 'Replayed',
      createdAt: 1_000 + index,
      updatedAt: 5_000,
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

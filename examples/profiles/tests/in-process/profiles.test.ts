import { renderToStaticMarkup } from 'react-dom/server';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { PAGE_PATH, signVerdict, VERDICT } from '#lib/http/signed-verdict';
import { startProvider } from '../harness/identity-provider';
import { importAsProcess, startInProcess } from '../harness/in-process';
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
    `INSERT INTO previous_ids SELECT 'user', 'user_old', id, 'user_ada', 'run', now() + interval '1 day' FROM users`,
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

test('A replay stores the profile of each user that the provider lists', async () => {
  const provider = stopAfterTest(await startProvider());
  vi.stubEnv('CLERK_API_URL', provider.url);
  provider.createUser({ email: 'listed@example.com' });
  const retryOptions = { seconds: 5 };
  for await (const page of backfill({ replay: events['user.updated'], retryOptions }))
    expect(page).toMatchObject([{ outcome: 'linked' }]);
  const { rows } = await pool.query('SELECT email FROM profiles');
  expect(rows).toEqual([{ email: 'listed@example.com' }]);
});

import { afterAll, afterEach, expect, test } from 'vitest';
import type { ReconcileStep } from '#lib/users/reconcile';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { stubProviderUsers } from '../harness/provider-users';

const { database } = await startInProcess();
const provider = stubProviderUsers();
afterAll(() => provider.restore());

const { deleteLink, insertLinks, linkMany, reconcile } = await importAsProcess(async () => ({
  ...(await import('#lib/users/reconcile')),
  ...(await import('#lib/users/rows')),
  ...(await import('#lib/linking/links')),
  ...(await import('#lib/users/backfill')),
}));

// A linked user has a row in `users`. A forgotten user had a row, which an operator has deleted. A previous id is an id that a
// user had at the provider before an operator moved the user to another id.

/** Reasons of the waits between two attempts. */
const waits: string[] = [];
async function run(): Promise<ReconcileStep[]> {
  const steps: ReconcileStep[] = [];
  const sleep = async () => undefined;
  for await (const step of reconcile({ seconds: 5, sleep, onWait: (reason) => waits.push(reason) })) {
    steps.push(step);
    if (steps.length === 1) provider.failures.push(() => new Response('', { status: 502 }));
  }
  return steps;
}
const signUp = (...ids: string[]) => {
  provider.users = ids.map((id, index) => ({ id, createdAt: index }));
};

afterEach(async () => {
  await database.pool.query('TRUNCATE users, forgotten_users CASCADE');
  provider.failures.length = 0;
  waits.length = 0;
});

test('reconcile() returns the users of the provider that are neither linked nor forgotten, and counts the forgotten ones', async () => {
  await linkMany(['user_linked']);
  for (const id of ['user_forgotten', 'user_back']) await deleteLink(id, 30);
  await insertLinks(['user_back'], Date.now() / 1_000 + 60);
  signUp('user_linked', 'user_new', 'user_forgotten', 'user_back', 'user\0nul');
  const [step] = await run();
  expect(step).toEqual({
    ...{ providerUsers: 5, rows: 0, forgotten: 1 },
    ...{ notLinked: ['user_new', 'user\0nul'], notAtProvider: [] },
  });
});

test('reconcile() returns a row if the provider has neither the present id nor any previous id of the row, and repeats a request that fails', async () => {
  await linkMany(['user_present', 'user_moved', 'user_gone']);
  await database.pool.query(`
    INSERT INTO previous_ids
    SELECT 'old_' || identity_provider_user_id, id, identity_provider_user_id, 'run', '2030-01-01' FROM users
    WHERE identity_provider_user_id IN ('user_moved', 'user_gone')`);
  signUp('user_present', 'old_user_moved');
  provider.failures.push(() => new Response('', { status: 503 }));
  const [gone] = await database.idsOf('user_gone');
  const [, ...steps] = await run();
  expect(steps).toEqual([
    {
      ...{ providerUsers: 0, rows: 3, forgotten: 0, notLinked: [] },
      notAtProvider: [
        {
          userId: gone,
          identityProviderUserId: 'user_gone',
          previousIds: [{ identityProviderUserId: 'old_user_gone', expiresAt: new Date('2030-01-01') }],
        },
      ],
    },
  ]);
  expect(waits).toEqual([503, 502].map((status) => `the identity provider responds with status ${status}`));
});

test('reconcile() compares each user and each row once, in pages of 500', async () => {
  const ids = Array.from({ length: 999 }, (_, index) => `user_${String(index).padStart(3, '0')}`);
  signUp(...ids);
  for (const half of [ids.slice(0, 500), ids.slice(500)]) await linkMany(half.slice(1));
  const gone = ['user_gone_1', 'user_gone_2', 'user_gone_3'];
  await linkMany(gone);
  // An update moves rows to the end of the table, so that the rows of the table are not sorted by id.
  await database.pool.query(`UPDATE users SET id = id WHERE identity_provider_user_id < 'user_500'`);
  const steps = await run();
  expect(steps.map(({ providerUsers, rows }) => providerUsers + rows)).toEqual([500, 499, 500, 500, 0]);
  expect(steps.flatMap(({ notLinked }) => notLinked)).toEqual(['user_000', 'user_500']);
  const links = steps.flatMap(({ notAtProvider }) => notAtProvider);
  expect(links.map(({ identityProviderUserId }) => identityProviderUserId)).toEqual(gone);
});

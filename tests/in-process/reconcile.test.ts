import { afterAll, afterEach, expect, test } from 'vitest';
import type { ReconcileResult } from '#lib/users/reconcile';
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
async function run(): Promise<ReconcileResult[][]> {
  const steps: ReconcileResult[][] = [];
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

test('A user of the provider is linked, forgotten or not linked', async () => {
  await linkMany(['user_linked']);
  for (const id of ['user_forgotten', 'user_back']) await deleteLink(id, 30);
  await insertLinks(['user_back'], Date.now() / 1_000 + 60);
  signUp('user_linked', 'user_new', 'user_forgotten', 'user_back', 'user\0nul');
  const [step] = await run();
  expect(step?.map(({ id, outcome }) => [id, outcome])).toEqual([
    ['user_linked', 'linked'],
    ['user_new', 'not linked'],
    ['user_forgotten', 'forgotten'],
    ['user_back', 'linked'],
    ['user\0nul', 'not linked'],
  ]);
});

test('A row is not at the provider if the provider has neither the present id nor any previous id of the row. A request that fails is repeated', async () => {
  await linkMany(['user_present', 'user_moved', 'user_gone']);
  await database.pool.query(`
    INSERT INTO previous_ids
    SELECT 'old_' || identity_provider_user_id, id, identity_provider_user_id, 'run', '2030-01-01' FROM users
    WHERE identity_provider_user_id IN ('user_moved', 'user_gone')`);
  signUp('user_present', 'old_user_moved');
  provider.failures.push(() => new Response('', { status: 503 }));
  const [reason] = await database.idsOf('user_gone');
  const [, ...steps] = await run();
  expect(steps.flat().filter((result) => result.outcome !== 'at the provider')).toEqual([
    { id: 'user_gone', outcome: 'not at the provider', reason },
  ]);
  expect(steps.flat()).toHaveLength(3);
  expect(waits).toEqual([503, 502].map((status) => `the identity provider responds with status ${status}`));
});

test('A check compares each user and each row once, in pages of 500', async () => {
  const ids = Array.from({ length: 999 }, (_, index) => `user_${String(index).padStart(3, '0')}`);
  signUp(...ids);
  for (const half of [ids.slice(0, 500), ids.slice(500)]) await linkMany(half.slice(1));
  const gone = ['user_gone_1', 'user_gone_2', 'user_gone_3'];
  await linkMany(gone);
  // An update moves rows to the end of the table, so that the rows of the table are not sorted by id.
  await database.pool.query(`UPDATE users SET id = id WHERE identity_provider_user_id < 'user_500'`);
  const steps = await run();
  expect(steps.map((step) => step.length)).toEqual([500, 499, 500, 500, 0]);
  const idsWith = (outcome: string) =>
    steps.flat().flatMap((result) => (result.outcome === outcome ? [result.id] : []));
  expect(idsWith('not linked')).toEqual(['user_000', 'user_500']);
  expect(idsWith('not at the provider')).toEqual(gone);
});

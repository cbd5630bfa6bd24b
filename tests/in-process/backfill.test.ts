import { afterAll, afterEach, expect, test } from 'vitest';
import type { BackfillOptions, BackfillStep } from '#lib/users/backfill';
import { allowInserts, DISK_FULL, failInserts, importAsProcess, startInProcess } from '../harness/in-process';
import { stubProviderUsers } from '../harness/provider-users';

const { database } = await startInProcess();
const provider = stubProviderUsers();
afterAll(() => provider.restore());

const { backfill, deleteLink, linkMany } = await importAsProcess(async () => ({
  ...(await import('#lib/users/backfill')),
  ...(await import('#lib/users/rows')),
  ...(await import('#lib/linking/links')),
}));

/** Reasons of the waits between two attempts. */
const waits: string[] = [];
const retryOptions = {
  seconds: 5,
  onWait: (reason: string) => waits.push(reason),
  sleep: async () => undefined,
};
async function run(options: Partial<BackfillOptions> = {}): Promise<BackfillStep[]> {
  const steps: BackfillStep[] = [];
  for await (const step of backfill({ retryOptions, ...options })) steps.push(step);
  return steps;
}

const TOO_LONG = 'x'.repeat(256);
const usersOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: `user_${index}`, createdAt: 1_000 + index }));
/** The user with this index in the list of `usersOf`. */
const userAt = (index: number) => ({ id: `user_${index}`, createdAt: 1_000 + index });

afterEach(async () => {
  await allowInserts(database);
  await database.pool.query('TRUNCATE users, forgotten_users CASCADE');
  provider.queries.length = 0;
  waits.length = 0;
});

/**
 * The provider has 501 users. `user_0` is linked, which means that the user has a row in `users`. `user_1` is forgotten, which
 * means that an operator has deleted the row and a backfill must not create it again. The ids of the third and the fourth user
 * are too long, and the id of the fourth user also contains a null byte.
 */
async function prepare(): Promise<void> {
  const users = usersOf(501).map((user, index) =>
    index === 2 ? { ...user, id: TOO_LONG } : index === 3 ? { ...user, id: `${TOO_LONG}\0` } : user,
  );
  provider.users = users;
  await linkMany(['user_0']);
  await deleteLink('user_1', 30);
}
const reason = 'identityProviderUserId must have at most 255 characters';
const STEPS = [
  {
    ...{ seen: 500, linked: 496, alreadyLinked: 1, forgotten: 1 },
    failed: [
      { id: TOO_LONG, reason },
      { id: `${TOO_LONG}\0`, reason },
    ],
    cursor: { createdAt: 1_499, seen: [userAt(498), userAt(499)] },
  },
  {
    ...{ seen: 1, linked: 1, alreadyLinked: 0, forgotten: 0, failed: [] },
    cursor: { createdAt: 1_500, seen: [userAt(499), userAt(500)] },
  },
];

test('backfill() skips linked, forgotten and invalid users, links all other users, and yields the counts and the end position of each page', async () => {
  await prepare();
  expect(await run()).toEqual(STEPS);
  expect(await database.users()).toHaveLength(498);
  expect(await database.users('user_1')).toEqual([]);
  expect(provider.queries).toEqual([
    '?order_by=%2Bcreated_at&limit=500',
    '?order_by=%2Bcreated_at&limit=500&created_at_after=1498',
  ]);
  const alreadyLinked = (await run()).map((step) => [step.linked, step.alreadyLinked, step.forgotten]);
  expect(alreadyLinked).toEqual([
    [0, 497, 1],
    [0, 1, 0],
  ]);
});

test('A dry run of backfill() returns the same counts as a real run, and links no user', async () => {
  await prepare();
  expect(await run({ dryRun: true })).toEqual(STEPS);
  expect(await database.users()).toEqual(['user_0']);
});

test('backfill() starts with the users that were created at a given time, or after a given position', async () => {
  provider.users = usersOf(5);
  const [step] = await run({ from: new Date(1_003) });
  expect(await database.users()).toEqual(['user_3', 'user_4']);
  const [last] = await run({ from: { createdAt: 1_002, seen: [userAt(2)] } });
  expect([step, last]).toMatchObject([
    { seen: 2, linked: 2 },
    { seen: 2, alreadyLinked: 2 },
  ]);
  expect(provider.queries).toEqual([
    '?order_by=%2Bcreated_at&limit=500&created_at_after=1002',
    '?order_by=%2Bcreated_at&limit=500&created_at_after=1001',
  ]);
});

test('backfill() retries a provider request and a database statement that fail temporarily, and waits before each retry', async () => {
  provider.users = usersOf(3);
  provider.failures.push(() => new Response('', { status: 503 }));
  await failInserts(database, DISK_FULL, 1);
  expect(await run()).toMatchObject([{ linked: 3 }]);
  expect(waits).toEqual([
    'the identity provider responds with status 503',
    `The database failed (${DISK_FULL})`,
  ]);
});

test('backfill() rejects if the provider rejects the secret key, and the users of earlier pages stay linked', async () => {
  provider.users = usersOf(501);
  const steps = backfill({ retryOptions });
  expect(await steps.next()).toMatchObject({ value: { linked: 500 } });
  provider.failures.push(() => new Response('', { status: 401 }));
  await expect(steps.next()).rejects.toThrow('The identity provider rejects IDP_SECRET_KEY');
  expect(waits).toEqual([]);
  expect(await database.users()).toHaveLength(500);
});

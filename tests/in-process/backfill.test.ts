import { afterAll, afterEach, expect, test, vi } from 'vitest';
import type { BackfillOptions, BackfillResult } from '#lib/operator/backfill';
import {
  DISK_FULL,
  failInserts,
  importAsProcess,
  SERIALIZATION_FAILURE,
  startInProcess,
} from '../harness/in-process';
import { countOutcomes } from '../harness/outcomes';
import { stubProvider } from '../harness/provider-stub';

const { database } = await startInProcess();
const provider = stubProvider();
afterAll(() => provider.restore());

const { backfill, deleteLink, findLinks, linkMany } = await importAsProcess(async () => ({
  ...(await import('#lib/operator/backfill')),
  ...(await import('#lib/operator/delete-link')),
  ...(await import('#lib/ids/store')),
}));

/** Reasons of the waits between two attempts. */
const waits: string[] = [];
const retryOptions = {
  seconds: 5,
  onWait: (reason: string) => waits.push(reason),
  sleep: async () => undefined,
};
const run = (options: Partial<BackfillOptions> = {}) => countOutcomes(backfill({ retryOptions, ...options }));
/** Returns the results with a reason. */
async function problems(options: Partial<BackfillOptions> = {}) {
  const found: BackfillResult[] = [];
  for await (const page of backfill({ retryOptions, ...options }))
    found.push(...page.filter(({ reason }) => reason !== undefined));
  return found;
}

const TOO_LONG = 'x'.repeat(256);
const usersOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: `user_${index}`, createdAt: 1_000 + index }));

afterEach(async () => {
  await database.pool.query('TRUNCATE users, forgotten_users CASCADE');
  provider.queries.length = 0;
  waits.length = 0;
});

test('A backfill links all users except linked, forgotten and invalid ones. A dry run returns the same and links no user', async () => {
  provider.entries.user = usersOf(501).map((user, index) => (index === 2 ? { ...user, id: TOO_LONG } : user));
  await linkMany(['user_0']);
  await deleteLink('user', 'user_1', 30, { by: 'me' });
  // An expired previous id.
  await database.pool.query(
    `INSERT INTO previous_ids SELECT 'user', 'user_3', id, 'user_0', 'run', now() FROM users`,
  );
  const others = { 'already linked': 2, forgotten: 1, failed: 1 };
  expect(await run({ dryRun: true })).toEqual({ 'to link': 497, ...others });
  expect(await database.users()).toEqual(['user_0']);
  expect(await run()).toEqual({ linked: 497, ...others });
  expect(await database.users()).toHaveLength(498);
  expect(await database.users('user_1')).toEqual([]);
  const reason = 'identityProviderUserId must have at most 255 characters';
  expect(await problems()).toEqual([{ id: TOO_LONG, createdAt: 1_002, outcome: 'failed', reason }]);
  expect(await run({ since: new Date(1_499) })).toEqual({ 'already linked': 2 });
});

test('The link of many users takes one statement to find the unlinked users and one to insert them, which is repeated after a serialization failure', async () => {
  await linkMany(['user_b']);
  await failInserts(database, SERIALIZATION_FAILURE, 1);
  database.takeStatements();
  expect([...(await linkMany(['user_a', 'user_b', 'user_c'])).keys()]).toEqual(['user_a', 'user_c']);
  expect(database.takeVerbs()).toEqual(['SELECT', 'INSERT', 'SELECT', 'INSERT']);
  expect((await linkMany(['user_a', 'user_b', 'user_c'])).size).toBe(0);
  expect(database.takeVerbs()).toEqual(['SELECT']);
  expect(await database.users()).toEqual(['user_a', 'user_b', 'user_c']);
});

test('A backfill retries a provider request and a database statement that fail temporarily', async () => {
  provider.entries.user = usersOf(3);
  provider.failures.push(() => new Response('', { status: 503 }));
  await failInserts(database, DISK_FULL, 1);
  expect(await run()).toEqual({ linked: 3 });
  expect(waits).toEqual([
    'the identity provider responds with status 503',
    `The database failed (${DISK_FULL})`,
  ]);
});

test('A backfill rejects if the provider rejects the secret key, and the users of earlier pages stay linked', async () => {
  provider.entries.user = usersOf(501);
  const steps = backfill({ retryOptions });
  expect((await steps.next()).value).toHaveLength(500);
  provider.failures.push(() => new Response('', { status: 401 }));
  await expect(steps.next()).rejects.toThrow('The identity provider rejects IDP_SECRET_KEY');
  expect(waits).toEqual([]);
  expect(await database.users()).toHaveLength(500);
});

test('In each replay, a backfill passes every linked user to the handler as a webhook would, and reports the users whose handler throws without the message of the error', async () => {
  provider.entries.user = usersOf(501).map((user) => ({ ...user, updatedAt: 7_000 }));
  await linkMany(['user_0']);
  await deleteLink('user', 'user_1', 30, { by: 'me' });
  const replay = vi.fn(async (data: unknown, _delivery: object) => {
    if (Object(data).id === 'user_2') throw new TypeError('Ada Lovelace');
  });
  await run({ replay, dryRun: true });
  expect(replay).not.toHaveBeenCalled();
  const reason = 'The handler of user.updated threw (TypeError)';
  expect(await problems({ replay })).toMatchObject([{ id: 'user_2', outcome: 'failed', reason }]);
  expect(replay).toHaveBeenCalledTimes(501);
  expect(replay.mock.calls[0]).toEqual([
    { object: 'user', id: 'user_0', created_at: 1_000, updated_at: 7_000 },
    { messageId: expect.stringMatching(/^replay:[0-9a-f-]{36}:user_0$/), occurredAt: 7_000 },
  ]);
  await run({ replay });
  expect(new Set(replay.mock.calls.map(([, delivery]) => Object(delivery).messageId)).size).toBe(1_000);
});

test('If the database fails during a replay, a backfill repeats the handlers that threw, and rejects if the database stays unavailable', async () => {
  provider.entries.user = usersOf(20).map((user) => ({ ...user, updatedAt: 7_000 }));
  const handled: string[] = [];
  const outage = vi.fn(() => database.proxy.treat('reset'));
  const replay = async (data: unknown) => {
    if (handled.length >= 10 && outage.mock.calls.length === 0) await outage();
    await findLinks('user', ['user_0']);
    handled.push(Object(data).id);
  };
  const sleep = () => database.proxy.treat('forward');
  expect(await problems({ replay, retryOptions: { ...retryOptions, sleep } })).toEqual([]);
  expect(new Set(handled).size).toBe(20);
  expect(waits[0]).toMatch(/^The database failed/);
  outage.mockClear();
  await expect(run({ replay })).rejects.toThrow(/^The database failed/);
  await database.proxy.treat('forward');
});

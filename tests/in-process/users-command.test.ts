import { readFileSync } from 'node:fs';
import { afterEach, expect, test, vi } from 'vitest';
import { cacheKey } from '../harness/dependencies/kv';
import { runUsersCommand, startUsersCommand } from '../vitest/run-users-command';

// Tests of the commands for one user, and of `due`. tests/in-process/forgotten.test.ts checks that a forgotten user is not linked
// again, and tests/in-process/pending-deletions.test.ts which deletions are due.

/** Lengths of the pauses in milliseconds. The mock shortens each pause to at most a millisecond. */
const { pauses } = vi.hoisted(() => ({ pauses: Array.of<number | undefined>() }));
vi.mock('node:timers/promises', async (original) => {
  const timers = await original<typeof import('node:timers/promises')>();
  const setTimeout = (milliseconds?: number) => {
    pauses.push(milliseconds);
    return timers.setTimeout(1);
  };
  return { ...timers, setTimeout };
});

const { database, kv, provider, environment, users } = await startUsersCommand();

/** Creates a user at the provider that is linked and has a cached id. Returns both ids. */
async function signUp(name: string) {
  const { id } = provider.createUser({ email: `${name}@private.example` });
  await database.link(id);
  const [userId = ''] = await database.idsOf(id);
  await kv.cacheId(id, userId);
  return { id, userId };
}
/** Stores the pending deletion of a user, as events/forget-deleted-user.ts does. */
const scheduleDeletion = (id: string, due: string) =>
  database.pool.query(`INSERT INTO pending_deletions VALUES ($1, ${due})`, [id]);
const pendingDeletions = async () =>
  (await database.pool.query('SELECT identity_provider_user_id AS id FROM pending_deletions')).rows.map(
    ({ id }) => id,
  );

afterEach(() => database.pool.query('TRUNCATE pending_deletions').then(() => undefined));

test('The show command finds a user by either id', async () => {
  const { id } = provider.createUser({ email: 'shown@private.example' });
  const userId = '019a0000-0000-7000-8000-000000000001';
  await database.pool.query('INSERT INTO users VALUES ($1, $2)', [userId, id]);
  await kv.cacheId(id, userId);
  const { exit, stdout } = await users('show', userId);
  expect(exit).toBe(0);
  expect(stdout).toMatch(
    new RegExp(
      `^internal id +${userId}\nlinked +20\\S+Z\nprovider's id +${id}\ncache +contains the internal id\nprovider +has this user, created at 20\\S+Z\n$`,
    ),
  );
  expect((await users('show', id)).stdout).toBe(stdout);
});

test('The show command reports a user without a row as not linked, and marks a cached id of this user as a mismatch', async () => {
  await kv.cacheId('user_nobody', '019a0000-0000-7000-8000-000000000000');
  const { exit, stdout } = await users('show', 'user_nobody');
  expect(exit).toBe(1);
  expect(stdout).toMatch(
    /internal id +none.*\n.*\ncache +CONTAINS AN ID, BUT THE USER IS NOT LINKED: 019a\S+\nprovider +has no such user\n$/s,
  );
});

test('The forget command deletes the user and the published external_id, and the remember command the entry of the forgotten user', async () => {
  const { id, userId } = await signUp('forgotten');
  expect(await users('publish')).toMatchObject({ exit: 0 });
  expect(provider.store.users.get(id)?.externalId).toBe(userId);
  pauses.length = 0;
  const { exit, stdout } = await users('forget', id, '--yes');
  expect([exit, pauses]).toEqual([0, [9_000]]);
  expect(stdout).toContain('provider still has this user');
  expect(stdout).toMatch(
    /This user no longer has a row or a cached id\.\nThe external_id .* is removed\.\n$/,
  );
  expect(stdout).not.toContain('@');
  expect(provider.store.users.get(id)?.externalId).toBeNull();
  expect([await database.idsOf(id), await kv.cachedId(id)]).toEqual([[], null]);
  expect(await users('show', id)).toMatchObject({
    exit: 1,
    stdout: expect.stringMatching(/\nforgotten +until 20\S+Z\n/),
  });
  const exported = await users('export', id);
  expect(exported.exit).toBe(1);
  expect(JSON.parse(exported.stdout)).toMatchObject({ forgottenUntil: expect.stringMatching(/^20/) });
  expect(await users('remember', id)).toMatchObject({ exit: 0 });
  expect((await users('show', id)).stdout).not.toContain('forgotten');
});

test('The steps of docs/users.md forget a user that was deleted at the provider', async () => {
  const [, section = ''] = readFileSync('docs/users.md', 'utf8').split('\n## Forget a user\n');
  const steps = [...(section.split('\n## ')[0] ?? '').matchAll(/^(\d)\. (.*)/gm)].map(([, , step]) => step);
  expect(steps).toEqual([
    expect.stringContaining('Delete the user at the identity provider'),
    expect.stringContaining('Wait until the session tokens have expired'),
    expect.stringContaining('Run `npm run users -- forget <either id>`'),
  ]);
  const { id, userId } = await signUp('leaving');
  provider.deleteUser(id);
  const { exit, stdout } = await users('forget', userId, '--yes');
  expect({ exit, stdout }).toEqual({ exit: 0, stdout: expect.not.stringContaining('still has this user') });
  expect(await database.idsOf(id)).toEqual([]);
});

test('The show, export, remember and forget commands find a pending deletion by any id of the user', async () => {
  const oldId = 'user_before_a_relink';
  const { id, userId } = await signUp('relinked');
  await database.pool.query(`INSERT INTO previous_ids VALUES ($1, $2, $3, 'run', now() + interval '1 day')`, [
    oldId,
    userId,
    id,
  ]);
  await scheduleDeletion(oldId, `'2099-01-01Z'`);
  for (const command of ['show', 'export'])
    expect((await users(command, id)).stdout).toContain('2099-01-01T00:00:00.000Z');
  expect(await users('remember', id)).toMatchObject({
    exit: 0,
    stdout: 'The pending deletion of this user is cancelled.\n',
  });
  expect(await pendingDeletions()).toEqual([]);
  await scheduleDeletion(oldId, `'2099-01-01Z'`);
  expect(await users('forget', id, '--yes')).toMatchObject({ exit: 0 });
  expect(await pendingDeletions()).toEqual([]);
});

test('The forget command of an id without a row and without an entry exits with 1 and stores nothing', async () => {
  expect(await users('forget', 'user_no_one_has', '--yes')).toMatchObject({
    exit: 1,
    stdout: 'Nothing was deleted, because there is neither a row nor an entry for this id.\n',
  });
  expect(await users('show', 'user_no_one_has')).toMatchObject({
    stdout: expect.not.stringContaining('forgotten'),
  });
});

test('The forget command deletes nothing without a confirmation, with invalid arguments or an ambiguous id, or if the cache does not respond', async () => {
  const { id, userId } = await signUp('staying');
  await database.link(userId);
  const attempts = [
    [[id], 2, 'Not a terminal: pass --yes.'],
    [['', '--yes'], 2, 'Invalid id.'],
    [['x'.repeat(256), '--yes'], 2, 'Invalid id.'],
    [['019a0000-0000-7000-8000-000000000000', '--yes'], 2, 'No user has this internal id.'],
    [[userId, '--yes'], 1, "Pass the provider's id of A or the internal id of B."],
  ] as const;
  for (const [args, exit, message] of attempts)
    expect(await users('forget', ...args)).toMatchObject({ exit, stderr: expect.stringContaining(message) });
  const withoutCache = { ...environment, KV_REST_API_URL: 'http://127.0.0.1:1' };
  expect(await runUsersCommand(['forget', id, '--yes'], withoutCache)).toMatchObject({
    exit: 1,
    stderr: 'The cache does not respond. Nothing was deleted.\n',
  });
  expect(await database.idsOf(id)).toEqual([userId]);
});

test('The due command prints a receipt for each user whose deletion is due', async () => {
  const [gone, restored, kept] = [await signUp('due'), await signUp('restored'), await signUp('kept')];
  for (const { id } of [gone, kept]) provider.deleteUser(id);
  for (const { id } of [gone, restored, kept]) await scheduleDeletion(id, `now() - interval '1 minute'`);
  await scheduleDeletion('user_not_due', `now() + interval '1 hour'`);
  await database.pool.query(`CREATE TABLE orders_kept (user_id UUID NOT NULL REFERENCES users (id));
    INSERT INTO orders_kept VALUES ('${kept.userId}')`);
  const { exit, stdout, stderr } = await users('due');
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: '' });
  // The order depends on the random ids of the provider.
  const receipts = stdout.trimEnd().split('\n');
  for (const [{ userId }, outcome] of [
    [gone, 'forgotten'],
    [restored, 'kept, because the identity provider has this user again'],
    [kept, 'pending, because a foreign key .*'],
  ] as const)
    expect(receipts).toContainEqual(
      expect.stringMatching(new RegExp(`^20\\S+Z [0-9a-f]{16} \\(${userId}\\) ${outcome}$`)),
    );
  expect(receipts.at(-1)).toBe('3 due, 1 forgotten, 1 kept, 1 pending');
  expect(stdout).not.toMatch(/user_|@/);
  expect([await database.idsOf(gone.id), await kv.engine.call('EXISTS', cacheKey(gone.id))]).toEqual([[], 0]);
  expect((await pendingDeletions()).sort()).toEqual([kept.id, 'user_not_due'].sort());
  await database.pool.query('DROP TABLE orders_kept');
  expect(await users('due')).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(/\n1 due, 1 forgotten, /),
  });
});

import { expect, test } from 'vitest';
import { startProvider } from '../harness/identity-provider';
import { deliver, me, now, register, tokenFor, userCreated } from '../harness/requests';
import { runUsersCommand } from '../vitest/run-users-command';
import { sharedService } from '../vitest/shared-service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = sharedService();
const { database, idp, url } = service;
/** The instance of the identity provider that the commands query. */
const provider = stopAfterAll(await startProvider());
const environment = { ...service.environment, CLERK_API_URL: provider.url };
/** Runs a command such as `npm run users -- show`. */
const users = (...args: string[]) => runUsersCommand(args, environment);

test('The show command finds a user by the internal or the provider id, and the forget command deletes the user. Only the remember command lets an event link the user again', async () => {
  const { id } = provider.createUser({ email: 'forgotten@private.example' });
  const before = tokenFor(idp, id, { iat: now() - 30 });
  const visit = async () => Object((await me(url, before)).body).userId;
  const userId = String(await visit());
  await expect
    .poll(async () => (await users('show', userId)).stdout)
    .toMatch(
      new RegExp(
        `^internal id +${userId}\nlinked +20\\S+Z\nprovider's id +${id}\ncache +contains the internal id\nprovider +has this user, created at 20\\S+Z\n$`,
      ),
    );

  expect(await users('publish')).toMatchObject({ exit: 0 });
  expect(provider.store.users.get(id)?.externalId).toBe(userId);
  const forgotten = await users('forget', id, '--yes');
  expect(forgotten).toMatchObject({
    exit: 0,
    stdout: expect.stringContaining('provider still has this user'),
  });
  expect(forgotten.stdout).toMatch(
    /This user no longer has a row or a cached id\.\nThe external_id .* is removed\.\n$/,
  );
  expect(provider.store.users.get(id)?.externalId).toBeNull();
  expect(forgotten.stdout).not.toContain('@');
  const rejected = await me(url, before);
  expect(rejected).toMatchObject({ status: 401, body: { message: 'Unauthorized' } });
  const line = () => service.linesWith(rejected.headers.get('x-request-id') ?? '');
  await expect.poll(line).toEqual([expect.stringContaining('"reason":"forgotten"')]);
  const caller = tokenFor(idp, 'user_calling');
  expect(await register(url, caller, { identityProviderUserId: id })).toMatchObject({
    status: 409,
    body: { message: 'User is forgotten' },
  });
  expect(await deliver(url, userCreated(id))).toMatchObject({ status: 200, body: { received: true } });
  expect(await database.idsOf(id)).toEqual([]);
  const shown = await users('show', id);
  expect(shown).toMatchObject({ exit: 1, stdout: expect.stringMatching(/\nforgotten +until 20\S+Z\n/) });

  expect(await users('remember', id)).toMatchObject({ exit: 0 });
  expect(await deliver(url, userCreated(id))).toMatchObject({ status: 200 });
  expect(await database.idsOf(id)).toHaveLength(1);
});

test('The show, export, remember and forget commands find a pending deletion by any id of the user', async () => {
  const [oldId, newId] = ['user_before_a_relink', 'user_after_a_relink'];
  const userId = String(Object((await me(url, tokenFor(idp, newId))).body).userId);
  await database.pool.query(`INSERT INTO previous_ids VALUES ($1, $2, $3, 'run', now() + interval '1 day')`, [
    oldId,
    userId,
    newId,
  ]);
  const schedule = () =>
    database.pool.query(`INSERT INTO pending_deletions VALUES ($1, '2099-01-01Z')`, [oldId]);
  const pending = async () =>
    (await database.pool.query('SELECT FROM pending_deletions WHERE identity_provider_user_id = $1', [oldId]))
      .rowCount;
  await schedule();
  for (const command of ['show', 'export'])
    expect((await users(command, newId)).stdout).toContain('2099-01-01T00:00:00.000Z');
  expect(await users('remember', newId)).toMatchObject({ exit: 0 });
  expect(await pending()).toBe(0);
  await schedule();
  expect(await users('forget', newId, '--yes')).toMatchObject({ exit: 0 });
  expect(await pending()).toBe(0);
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
  const id = 'user_who_stays';
  const token = tokenFor(idp, id);
  const userId = String(Object((await me(url, token)).body).userId);
  await register(url, token, { identityProviderUserId: userId });
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

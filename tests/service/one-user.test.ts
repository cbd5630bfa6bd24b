import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { runCommand, startCommand } from '../harness/commands';
import { bearer, cookie, deliver, me, now, register, send, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { runCommandInProcess } from '../vitest/run-command-in-process';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const { database, idp, environment } = service;
const key = (id: string) => `auth:user-id-by-idp:${id}`;
const cached = (id: string) => service.kv.engine.call('GET', key(id));
/** Runs a command such as `npm run users:show` in a new process. */
const command = (name: 'show' | 'forget' | 'remember' | 'export', ...args: string[]) =>
  runCommand(`users/${name}`, args, environment);
/** Runs `npm run users:show` in this process, which is faster. */
const show = (id: string) =>
  runCommandInProcess(() => import('../../commands/users/show'), [id], environment);
/** Runs `npm run users:forget` in this process. */
const forget = (...args: string[]) =>
  runCommandInProcess(() => import('../../commands/users/forget'), args, environment);
const signUp = (name: string) => idp.createUser({ email: `${name}@private.example` });
/** Makes a request with a session token of a user. Returns the internal id. */
async function visit(id: string): Promise<string> {
  const { status, body } = await me(service.url, tokenFor(idp, id));
  expect(status).toBe(200);
  return String(Object(body).userId);
}
/**
 * Sets the time of each deletion back by 10 s, so that a new session token can link the user (create the row in `users`). A
 * user that the forget command has deleted is forgotten: only a session token that is issued after the deletion links the user
 * again. Clocks may differ by up to 5 s, so the issue time must be more than 5 s after the deletion.
 */
const ageDeletions = () =>
  database.pool.query(`UPDATE forgotten_users SET forgotten_at = forgotten_at - interval '10 seconds'`);
/**
 * Runs the deletion of the forget command in this process. Calls `meanwhile` instead of the pause between the deletion of the
 * row and the last deletion of the cached id. Stores for 30 days that the user is forgotten.
 */
async function forgetWith(
  id: string,
  meanwhile: () => Promise<unknown> = async () => undefined,
): Promise<string> {
  return (await import('#lib/users/forget')).forget(id, 30, meanwhile);
}

beforeAll(() => {
  Object.assign(process.env, environment);
  return async () => {
    await (await import('#lib/storage/database')).closeDatabase();
    // The next test file may run in this process.
    for (const name of Object.keys(environment)) delete process.env[name];
  };
});

test('The show command finds a user by the internal or the provider id and prints no name or email address', async () => {
  const user = signUp('shown');
  const userId = await visit(user.id);
  const [byInternalId, byProviderId] = [await command('show', userId), await show(user.id)];
  expect(byInternalId).toMatchObject({ exit: 0, stderr: '' });
  expect(byInternalId.stdout).toMatch(
    new RegExp(
      `^internal id +${userId}\nlinked +20\\S+Z\nprovider's id +${user.id}\ncache +contains the internal id\nprovider +has this user, created at 20\\S+Z\n$`,
    ),
  );
  expect(byProviderId.stdout).toBe(byInternalId.stdout);
});

test('The show command reports a user without a row as not linked, and marks a cached id of this user as a mismatch', async () => {
  await service.kv.engine.call('SET', key('user_nobody'), '019a0000-0000-7000-8000-000000000000');
  const { exit, stdout } = await show('user_nobody');
  expect(exit).toBe(1);
  expect(stdout).toMatch(
    /internal id +none.*\n.*\ncache +CONTAINS AN ID, BUT THE USER IS NOT LINKED: 019a\S+\nprovider +has no such user\n$/s,
  );
});

test('The forget command deletes the row and the cached id of a user, and warns if the provider still has the user', async () => {
  const user = signUp('forgotten');
  const userId = await visit(user.id);
  expect(await cached(user.id)).toBe(userId);
  const { exit, stdout } = await command('forget', userId, '--yes');
  expect({ exit, rows: await database.rowsOf(user.id), cached: await cached(user.id) }).toEqual({
    exit: 0,
    rows: [],
    cached: null,
  });
  expect(stdout).toContain(
    'The identity provider still has this user. A session token that is issued after the deletion creates a new link',
  );
  expect(stdout).toMatch(/This user no longer has a row or a cached id\.\n$/);
  expect(stdout).not.toContain('@');
  await ageDeletions();
  expect(await visit(user.id)).not.toBe(userId);
});

test('The deletion of a user also removes an id that a concurrent request read before the deletion and cached after it', async () => {
  const id = 'user_in_a_race';
  const { pid, url } = soleProcess();
  const userId = await visit(id);
  await service.kv.engine.call('DEL', key(id));
  // Suspends the service process once it has sent its query, so that the result of the query waits in the socket.
  const listening = database.proxy.onClientData;
  let isStopped = false;
  database.proxy.onClientData = (chunk) => {
    listening?.(chunk);
    if (isStopped || !chunk.includes(id)) return;
    isStopped = true;
    process.kill(pid, 'SIGSTOP');
  };
  const inFlight = send(`${url}/users/v1/me`, { headers: bearer(tokenFor(idp, id)) });
  try {
    await expect.poll(() => isStopped).toBe(true);
    await expect.poll(queriesHaveEnded).toBe(true);
    const outcome = await forgetWith(id, async () => {
      expect(await database.rowsOf(id)).toEqual([]);
      process.kill(pid, 'SIGCONT');
      // The process resumes, returns the old id and caches it. The last step of the deletion removes the cached id.
      expect(await inFlight).toMatchObject({ status: 200, body: { userId } });
      expect(await cached(id)).toBe(userId);
    });
    expect(outcome).toBe('forgotten');
  } finally {
    process.kill(pid, 'SIGCONT');
    database.proxy.onClientData = listening;
  }
  expect(await cached(id)).toBeNull();
  await ageDeletions();
  const next = await visit(id);
  expect(next).not.toBe(userId);
  expect(await database.rowsOf(id)).toMatchObject([{ id: next }]);
});

function soleProcess() {
  const [process] = service.processes;
  if (process === undefined) throw new Error('The service has no process.');
  return process;
}

/** Returns true if no query of the service is running. */
async function queriesHaveEnded(): Promise<boolean> {
  const { rows } = await database.pool.query(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`,
  );
  return rows.length === 0;
}

test('If a session token links a user again before the deletion of this user has ended, the user gets a new internal id, and the deletion reports `relinked`', async () => {
  const id = 'user_who_comes_back';
  const userId = await visit(id);
  let next = '';
  const outcome = await forgetWith(id, async () => {
    await ageDeletions();
    next = await visit(id);
  });
  expect(outcome).toBe('relinked');
  expect(next).not.toBe(userId);
  expect(await database.rowsOf(id)).toMatchObject([{ id: next }]);
  expect([null, next]).toContain(await cached(id));
});

test('The deletion of a user removes the cached id even if there is no row', async () => {
  const id = 'user_half_forgotten';
  await visit(id);
  await database.pool.query('DELETE FROM users WHERE identity_provider_user_id = $1', [id]);
  expect(await forgetWith(id)).toBe('forgotten');
  expect(await cached(id)).toBeNull();
});

test('ON DELETE RESTRICT prevents the deletion of a user, and ON DELETE CASCADE deletes the rows that refer to the user', async () => {
  const [kept, gone] = ['user_with_notes_kept', 'user_with_notes_gone'] as const;
  const [keptId, goneId] = [await visit(kept), await visit(gone)];
  await database.pool.query(`
    CREATE TABLE notes_kept (user_id UUID NOT NULL REFERENCES users (id) ON DELETE RESTRICT);
    CREATE TABLE notes_gone (user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE);
    INSERT INTO notes_kept VALUES ('${keptId}');
    INSERT INTO notes_gone VALUES ('${goneId}')`);
  const restricted = await forget(kept, '--yes');
  expect(restricted).toMatchObject({
    exit: 1,
    stderr: '',
    stdout: expect.stringMatching(/Nothing was deleted, because a foreign key .* ON DELETE/),
  });
  expect(await database.rowsOf(kept)).toHaveLength(1);
  expect(await visit(kept)).toBe(keptId);
  expect(await forgetWith(gone)).toBe('forgotten');
  expect((await database.pool.query('SELECT * FROM notes_gone')).rows).toEqual([]);
  await database.pool.query('DROP TABLE notes_kept, notes_gone');
});

test('The forget command deletes nothing if the confirmation is missing, if it gets two ids, or if the cache does not respond', async () => {
  const id = 'user_who_stays';
  const userId = await visit(id);
  const unconfirmed = await command('forget', id);
  const several = await forget(id, userId, '--yes');
  expect(unconfirmed).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining('Not a terminal: pass --yes.'),
  });
  expect(several).toMatchObject({ exit: 2, stderr: expect.stringContaining('Pass one id') });
  await service.kv.proxy.treat('refuse');
  const uncached = await forget(id, '--yes');
  await service.kv.proxy.treat('forward');
  expect(uncached).toMatchObject({ exit: 1, stderr: 'The cache does not respond. Nothing was deleted.\n' });
  expect(await database.rowsOf(id)).toMatchObject([{ id: userId }]);
});

test('The forget command rejects an id that is the internal id of one user and the identity-provider id of another user', async () => {
  const userId = await visit('user_first_of_two');
  await register(service.url, tokenFor(idp, 'user_caller'), { identityProviderUserId: userId });
  const { exit, stderr } = await forget(userId, '--yes');
  expect({ exit, stderr }).toEqual({
    exit: 1,
    stderr: expect.stringContaining("Pass the provider's id of A or the internal id of B."),
  });
  expect(await database.rowsOf(userId)).toHaveLength(1);
});

test('A session token from before the deletion, the register route and a webhook event do not link a deleted user. After the remember command, a webhook event links the user again', async () => {
  const id = 'user_to_stay_forgotten';
  const before = tokenFor(idp, id, { iat: now() - 30 });
  const caller = tokenFor(idp, 'user_calling');
  await visit(id);
  expect(await forgetWith(id)).toBe('forgotten');
  const page = () =>
    send(`${service.url}/users/v1/me`, { headers: { ...cookie(before), 'sec-fetch-site': 'same-origin' } });
  const unauthorized = { status: 401, body: { message: 'Unauthorized' } };
  expect([await me(service.url, before), await page()]).toMatchObject([unauthorized, unauthorized]);
  await expect.poll(() => service.linesWith('"reason":"forgotten"')).toHaveLength(2);
  expect(await register(service.url, caller, { identityProviderUserId: id })).toMatchObject({
    status: 409,
    body: { message: 'User is forgotten' },
  });
  expect(await deliver(service.url, userCreated(id))).toMatchObject({
    status: 200,
    body: { received: true, eventType: 'user.created' },
  });
  await expect.poll(() => service.linesWith('"registered":"forgotten"')).toHaveLength(2);
  expect(await database.rowsOf(id)).toEqual([]);
  const shown = await show(id);
  expect(shown).toMatchObject({ exit: 1, stdout: expect.stringMatching(/\nforgotten +until 20\S+Z\n/) });

  const remembered = [await command('remember', id), await command('remember', id)];
  expect(remembered).toMatchObject([{ exit: 0 }, { exit: 1 }]);
  expect(await deliver(service.url, userCreated(id))).toMatchObject({ status: 200 });
  expect(await database.rowsOf(id)).toHaveLength(1);
});

test('The export command prints the same data for the internal id and the provider id of a user. After the deletion, it prints until when the user is forgotten', async () => {
  const { id } = signUp('exported');
  const userId = await visit(id);
  await database.pool.query('INSERT INTO webhook_subjects (id, applied_time) VALUES ($1, 1000), ($2, 1)', [
    id,
    'user_of_another_subject',
  ]);
  const { exit, stdout, stderr } = await command('export', '--user', userId);
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({
    link: { userId, identityProviderUserId: id },
    previousIds: [],
    cachedUserId: userId,
    forgottenUntil: null,
    deletionDueAt: null,
    webhookSubjects: [{ id, appliedTime: '1970-01-01T00:00:01.000Z', receivedAt: expect.any(String) }],
    ownTables: {},
  });
  expect((await command('export', '--user', id)).stdout).toBe(stdout);
  await forgetWith(id);
  const forgotten = await command('export', '--user', id);
  expect(forgotten.exit).toBe(1);
  expect(JSON.parse(forgotten.stdout)).toMatchObject({
    link: { userId: null, identityProviderUserId: id },
    cachedUserId: null,
    forgottenUntil: expect.stringMatching(/^20/),
  });
  expect(await command('export')).toMatchObject({ exit: 2, stderr: expect.stringContaining('Pass one id') });
});

test('exportUser() adds the rows that a function of the application returns from its own tables', async () => {
  const { exportUser } = await import('#lib/users/export');
  const userId = await visit('user_with_tables');
  const user = { userId, identityProviderUserId: 'user_with_tables', previousIds: [] };
  expect(await exportUser(user, async (given) => ({ notes: [given] }))).toMatchObject({
    link: { userId, identityProviderUserId: 'user_with_tables' },
    ownTables: { notes: [user] },
  });
});

/** Stores the pending deletion of a user, as events/forget-deleted-user.ts does. */
const scheduleDeletion = (id: string, due = `now() - interval '1 minute'`) =>
  database.pool.query(`INSERT INTO pending_deletions VALUES ($1, ${due})`, [id]);
const pendingDeletions = async () =>
  (await database.pool.query('SELECT identity_provider_user_id AS id FROM pending_deletions')).rows.map(
    ({ id }) => id,
  );

test('The forget command with --due forgets the users whose deletion is due, except those that the provider still has. It prints a receipt for each user whose deletion is due', async () => {
  const [gone, restored] = [signUp('due'), signUp('restored')];
  const [goneId, restoredId] = [await visit(gone.id), await visit(restored.id)];
  idp.deleteUser(gone.id);
  for (const { id } of [gone, restored]) await scheduleDeletion(id);
  await scheduleDeletion('user_not_due', `now() + interval '1 hour'`);
  const { exit, stdout, stderr } = await command('forget', '--due');
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  // The order depends on the random ids of the provider.
  expect(lines).toContainEqual(
    expect.stringMatching(new RegExp(`^20\\S+Z [0-9a-f]{16} \\(${goneId}\\) forgotten$`)),
  );
  expect(lines).toContainEqual(
    expect.stringMatching(new RegExp(`^20\\S+Z [0-9a-f]{16} \\(${restoredId}\\) kept, because`)),
  );
  expect(lines.at(-1)).toBe('2 due, 1 forgotten, 1 kept, 0 pending');
  for (const { id } of [gone, restored]) expect(stdout).not.toContain(id);
  expect([await database.rowsOf(gone.id), await cached(gone.id)]).toEqual([[], null]);
  expect(await database.rowsOf(restored.id)).toHaveLength(1);
  expect(await pendingDeletions()).toEqual(['user_not_due']);
  expect(await forget('--due')).toMatchObject({
    exit: 0,
    stdout: '0 due, 0 forgotten, 0 kept, 0 pending\n',
  });
});

test('If a forget command with --due is killed after it has deleted a row, the next forget command with --due completes the deletion', async () => {
  const id = 'user_of_a_killed_run';
  await visit(id);
  await scheduleDeletion(id);
  const killed = startCommand('users/forget', ['--due'], environment);
  await expect.poll(() => database.rowsOf(id)).toEqual([]);
  killed.child.kill('SIGKILL');
  expect(await killed.ended).toMatchObject({ exit: 'SIGKILL', stdout: '' });
  expect(await pendingDeletions()).toContain(id);
  expect(await command('forget', '--due')).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(/ \(not linked\) forgotten\n1 due, 1 forgotten, /),
  });
  expect(await pendingDeletions()).not.toContain(id);
});

test('The forget command with --due reports that a deletion stays pending if another table refers to the user. It rejects an id as an argument', async () => {
  const userId = await visit('user_due_with_orders');
  await scheduleDeletion('user_due_with_orders');
  await database.pool.query(`CREATE TABLE orders_kept (user_id UUID NOT NULL REFERENCES users (id));
    INSERT INTO orders_kept VALUES ('${userId}')`);
  expect(await forget('--due')).toMatchObject({
    exit: 1,
    stdout: expect.stringMatching(
      new RegExp(
        ` \\(${userId}\\) pending, because a foreign key .*\n1 due, 0 forgotten, 0 kept, 1 pending\n$`,
      ),
    ),
  });
  await database.pool.query('DROP TABLE orders_kept');
  expect(await forget('--due', userId)).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining('Pass an id or --due, not both.'),
  });
  expect(await database.rowsOf('user_due_with_orders')).toHaveLength(1);
});

test('The show and export commands print the pending deletion of a user. The remember and forget commands remove the pending deletion', async () => {
  const id = 'user_with_a_pending_deletion';
  await visit(id);
  await scheduleDeletion(id, `'2099-01-01T00:00Z'`);
  expect((await show(id)).stdout).toMatch(/\ndeletion +due at 2099-01-01T00:00:00.000Z\n/);
  const { stdout } = await command('export', '--user', id);
  expect(JSON.parse(stdout)).toMatchObject({ deletionDueAt: '2099-01-01T00:00:00.000Z' });
  expect(await command('remember', id)).toMatchObject({
    exit: 0,
    stdout: 'The pending deletion of this user is cancelled.\n',
  });
  expect(await pendingDeletions()).not.toContain(id);
  await scheduleDeletion(id);
  expect(await command('forget', id, '--yes')).toMatchObject({ exit: 0 });
  expect(await pendingDeletions()).not.toContain(id);
});

test('The steps of docs/users.md forget a user, and a replayed event does not link the user again', async () => {
  const [, section = ''] = readFileSync('docs/users.md', 'utf8').split('\n## Forget a user\n');
  const steps = [...(section.split('\n## ')[0] ?? '').matchAll(/^(\d)\. (.*)/gm)].map(([, , step]) => step);
  expect(steps).toEqual([
    expect.stringContaining('Delete the user at the identity provider'),
    expect.stringContaining('Wait until the session tokens have expired'),
    expect.stringContaining('Run `npm run users:forget -- <either id>`'),
  ]);
  const user = signUp('leaving');
  const userId = await visit(user.id);
  const token = tokenFor(idp, user.id, { iat: now() - 100, exp: now() - 40 });
  idp.deleteUser(user.id);
  const { exit, stdout } = await forget(userId, '--yes');
  expect({ exit, stdout }).toEqual({ exit: 0, stdout: expect.not.stringContaining('still has this user') });
  expect(await deliver(service.url, userCreated(user.id))).toMatchObject({ status: 200 });
  expect((await me(service.url, token)).status).toBe(401);
  expect([await database.rowsOf(user.id), await cached(user.id)]).toEqual([[], null]);
});

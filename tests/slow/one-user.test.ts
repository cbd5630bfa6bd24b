import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { startCommand } from '../harness/commands';
import { bearer, deliver, me, now, send, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { runUsersCommand } from '../vitest/run-users-command';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const { database, idp, environment } = service;
const key = (id: string) => `auth:user-id-by-idp:${id}`;
const cached = (id: string) => service.kv.engine.call('GET', key(id));
/** Runs a command such as `npm run users -- show`. */
const users = (...args: string[]) => runUsersCommand(args, environment);
const signUp = (name: string) => idp.createUser({ email: `${name}@private.example` });
/** Makes a request with a session token of a user. Returns the internal id. */
async function visit(id: string): Promise<string> {
  const { status, body } = await me(service.url, tokenFor(idp, id));
  expect(status).toBe(200);
  return String(Object(body).userId);
}
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

test('The show command reports a user without a row as not linked, and marks a cached id of this user as a mismatch', async () => {
  await service.kv.engine.call('SET', key('user_nobody'), '019a0000-0000-7000-8000-000000000000');
  const { exit, stdout } = await users('show', 'user_nobody');
  expect(exit).toBe(1);
  expect(stdout).toMatch(
    /internal id +none.*\n.*\ncache +CONTAINS AN ID, BUT THE USER IS NOT LINKED: 019a\S+\nprovider +has no such user\n$/s,
  );
});

test('The deletion of a user also removes an id that a concurrent request read before the deletion and cached after it', async () => {
  const id = 'user_in_a_race';
  const [{ pid, url } = { pid: 0, url: '' }] = service.processes;
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
  const runningQueries = async () => {
    const { rows } = await database.pool.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`,
    );
    return rows.length;
  };
  try {
    await expect.poll(() => isStopped).toBe(true);
    await expect.poll(runningQueries).toBe(0);
    const outcome = await forgetWith(id, async () => {
      expect(await database.idsOf(id)).toEqual([]);
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
});

test('The export command prints the same data for the internal id and the provider id of a user. After the deletion, it prints until when the user is forgotten', async () => {
  const { id } = signUp('exported');
  const userId = await visit(id);
  await database.pool.query('INSERT INTO webhook_subjects (id, applied_time) VALUES ($1, 1000)', [id]);
  const { exit, stdout, stderr } = await users('export', userId);
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
  expect((await users('export', id)).stdout).toBe(stdout);
  await forgetWith(id);
  const forgotten = await users('export', id);
  expect(forgotten.exit).toBe(1);
  expect(JSON.parse(forgotten.stdout)).toMatchObject({
    link: { userId: null, identityProviderUserId: id },
    cachedUserId: null,
    forgottenUntil: expect.stringMatching(/^20/),
  });
});

/** Stores the pending deletion of a user, as events/forget-deleted-user.ts does. */
const scheduleDeletion = (id: string, due = `now() - interval '1 minute'`) =>
  database.pool.query(`INSERT INTO pending_deletions VALUES ($1, ${due})`, [id]);
const pendingDeletions = async () =>
  (await database.pool.query('SELECT identity_provider_user_id AS id FROM pending_deletions')).rows.map(
    ({ id }) => id,
  );

test('The due command forgets the users whose deletion is due, except those that the provider still has or that another table refers to. It prints a receipt for each user', async () => {
  const [gone, restored, kept] = [signUp('due'), signUp('restored'), signUp('kept')];
  const ids = { gone: await visit(gone.id), restored: await visit(restored.id), kept: await visit(kept.id) };
  for (const { id } of [gone, kept]) idp.deleteUser(id);
  for (const { id } of [gone, restored, kept]) await scheduleDeletion(id);
  await scheduleDeletion('user_not_due', `now() + interval '1 hour'`);
  await database.pool.query(`CREATE TABLE orders_kept (user_id UUID NOT NULL REFERENCES users (id));
    INSERT INTO orders_kept VALUES ('${ids.kept}')`);
  const { exit, stdout, stderr } = await users('due');
  await database.pool.query('DROP TABLE orders_kept');
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: '' });
  // The order depends on the random ids of the provider.
  const receipts = stdout.trimEnd().split('\n');
  for (const [userId, outcome] of [
    [ids.gone, 'forgotten'],
    [ids.restored, 'kept, because the identity provider has this user again'],
    [ids.kept, 'pending, because a foreign key .*'],
  ])
    expect(receipts).toContainEqual(
      expect.stringMatching(new RegExp(`^20\\S+Z [0-9a-f]{16} \\(${userId}\\) ${outcome}$`)),
    );
  expect(receipts.at(-1)).toBe('3 due, 1 forgotten, 1 kept, 1 pending');
  expect(stdout).not.toMatch(/user_|@/);
  expect(await database.idsOf(gone.id)).toEqual([]);
  expect(await cached(gone.id)).toBeNull();
  expect((await pendingDeletions()).sort()).toEqual([kept.id, 'user_not_due'].sort());
  expect(await users('due')).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(/\n1 due, 1 forgotten, /),
  });
});

test('If a due command is killed after it has deleted a row, the next due command completes the deletion', async () => {
  const id = 'user_of_a_killed_run';
  await visit(id);
  await scheduleDeletion(id);
  const killed = startCommand('users', ['due'], environment);
  await expect.poll(() => database.idsOf(id)).toEqual([]);
  killed.child.kill('SIGKILL');
  expect(await killed.ended).toMatchObject({ exit: 'SIGKILL', stdout: '' });
  expect(await users('due')).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(/ \(not linked\) forgotten\n1 due, 1 forgotten, /),
  });
  expect(await pendingDeletions()).not.toContain(id);
});

test('The show and export commands print the pending deletion of a user, and the remember command cancels it', async () => {
  const id = 'user_with_a_pending_deletion';
  await visit(id);
  await scheduleDeletion(id, `'2099-01-01T00:00Z'`);
  expect((await users('show', id)).stdout).toMatch(/\ndeletion +due at 2099-01-01T00:00:00.000Z\n/);
  const { stdout } = await users('export', id);
  expect(JSON.parse(stdout)).toMatchObject({ deletionDueAt: '2099-01-01T00:00:00.000Z' });
  expect(await users('remember', id)).toMatchObject({
    exit: 0,
    stdout: 'The pending deletion of this user is cancelled.\n',
  });
  expect(await pendingDeletions()).not.toContain(id);
});

test('The steps of docs/users.md forget a user, and a replayed event does not link the user again', async () => {
  const [, section = ''] = readFileSync('docs/users.md', 'utf8').split('\n## Forget a user\n');
  const steps = [...(section.split('\n## ')[0] ?? '').matchAll(/^(\d)\. (.*)/gm)].map(([, , step]) => step);
  expect(steps).toEqual([
    expect.stringContaining('Delete the user at the identity provider'),
    expect.stringContaining('Wait until the session tokens have expired'),
    expect.stringContaining('Run `npm run users -- forget <either id>`'),
  ]);
  const user = signUp('leaving');
  const userId = await visit(user.id);
  const token = tokenFor(idp, user.id, { iat: now() - 100, exp: now() - 40 });
  idp.deleteUser(user.id);
  const { exit, stdout } = await users('forget', userId, '--yes');
  expect({ exit, stdout }).toEqual({ exit: 0, stdout: expect.not.stringContaining('still has this user') });
  expect(await deliver(service.url, userCreated(user.id))).toMatchObject({ status: 200 });
  expect((await me(service.url, token)).status).toBe(401);
  expect([await database.idsOf(user.id), await cached(user.id)]).toEqual([[], null]);
});

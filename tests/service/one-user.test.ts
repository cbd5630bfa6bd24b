import { beforeAll, expect, test } from 'vitest';
import { runCommand } from '../harness/commands';
import { bearer, cookie, deliver, me, now, register, send, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { runCommandInProcess } from '../vitest/run-command-in-process';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const { database, idp, environment } = service;
const key = (id: string) => `auth:user-id-by-idp:${id}`;
const cached = (id: string) => service.kv.engine.call('GET', key(id));
const command = (name: 'show' | 'forget' | 'remember' | 'export', ...args: string[]) =>
  runCommand(`users/${name}`, args, environment);
const show = (id: string) =>
  runCommandInProcess(() => import('../../commands/users/show'), [id], environment);
const forget = (...args: string[]) =>
  runCommandInProcess(() => import('../../commands/users/forget'), args, environment);
const signUp = (name: string) => idp.createUser({ email: `${name}@private.example` });
/** Makes a request with a session of a user, and returns the internal id. */
async function visit(id: string): Promise<string> {
  const { status, body } = await me(service.url, tokenFor(idp, id));
  expect(status).toBe(200);
  return String(Object(body).userId);
}
/** Moves the time of each deletion into the past, so that the tokens of later visits are newer. */
const ageDeletions = () =>
  database.pool.query(`UPDATE forgotten_users SET forgotten_at = forgotten_at - interval '10 seconds'`);
/** Runs the deletion of the forget command in this process. Calls `meanwhile` instead of the pause of the deletion. */
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

test('The show command finds a user by either of the two ids and prints no name or email address', async () => {
  const user = signUp('shown');
  const userId = await visit(user.id);
  const [byOwn, byProvider] = [await command('show', userId), await show(user.id)];
  expect(byOwn).toMatchObject({ exit: 0, stderr: '' });
  expect(byOwn.stdout).toMatch(
    new RegExp(
      `^internal id +${userId}\nlinked +20\\S+Z\nprovider's id +${user.id}\ncache +contains this id\nprovider +has this user since 20\\S+Z\n$`,
    ),
  );
  expect(byProvider.stdout).toBe(byOwn.stdout);
});

test('The show command reports an unknown user, and a cached id that has no row', async () => {
  await service.kv.engine.call('SET', key('user_nobody'), '019a0000-0000-7000-8000-000000000000');
  const { exit, stdout } = await show('user_nobody');
  expect(exit).toBe(1);
  expect(stdout).toMatch(
    /internal id +none.*\n.*\ncache +CONTAINS ANOTHER ID: 019a\S+\nprovider +has no such user\n$/s,
  );
});

test('The forget command deletes the row and the cached id, and warns if the provider still has the user', async () => {
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
  expect(stdout).toMatch(/The row and the cached id of this user are deleted\.\n$/);
  expect(stdout).not.toContain('@');
  await ageDeletions();
  expect(await visit(user.id)).not.toBe(userId);
});

test('A lookup that read the row before the deletion leaves no cached id', async () => {
  const id = 'user_in_a_race';
  const { pid, url } = soleProcess();
  const userId = await visit(id);
  await service.kv.engine.call('DEL', key(id));
  // The process is stopped once its query is sent. The result of the query then waits in its socket.
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
      // The process returns the old id and caches it. The last step of the deletion removes the cached id.
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
  if (process === undefined) throw new Error('A service has a process');
  return process;
}

/** Returns true if no query of the service is running. */
async function queriesHaveEnded(): Promise<boolean> {
  const { rows } = await database.pool.query(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`,
  );
  return rows.length === 0;
}

test('A user who makes a request during the deletion gets a new internal id, and the deletion reports `relinked`', async () => {
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

test('The deletion also removes a cached id that has no row', async () => {
  const id = 'user_half_forgotten';
  await visit(id);
  await database.pool.query('DELETE FROM users WHERE identity_provider_user_id = $1', [id]);
  expect(await forgetWith(id)).toBe('forgotten');
  expect(await cached(id)).toBeNull();
});

test('A foreign key with ON DELETE RESTRICT prevents the deletion, and a foreign key with CASCADE deletes the rows that refer to the user', async () => {
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

test('The forget command does not delete a user without a confirmation, without a cache, or with two ids', async () => {
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

test('The forget command rejects an id that is the internal id of one user and the identity-provider id of another', async () => {
  const userId = await visit('user_first_of_two');
  await register(service.url, tokenFor(idp, 'user_caller'), { identityProviderUserId: userId });
  const { exit, stderr } = await forget(userId, '--yes');
  expect({ exit, stderr }).toEqual({
    exit: 1,
    stderr: expect.stringContaining('Pass the other id of the user'),
  });
  expect(await database.rowsOf(userId)).toHaveLength(1);
});

test('A forgotten user is linked again only by a newer token, until the entry expires or the user is remembered', async () => {
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

test('The export command prints what the service holds of a user, by either id', async () => {
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

test('The export contains the rows that exportOwnTables returns', async () => {
  const { exportUser } = await import('#lib/users/export');
  const userId = await visit('user_with_tables');
  const user = { userId, identityProviderUserId: 'user_with_tables', previousIds: [] };
  expect(await exportUser(user, async (given) => ({ notes: [given] }))).toMatchObject({
    link: { userId, identityProviderUserId: 'user_with_tables' },
    ownTables: { notes: [user] },
  });
});

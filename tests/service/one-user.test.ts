import { beforeAll, expect, test } from 'vitest';
import { runCommand } from '../harness/commands';
import { bearer, me, register, send, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { runCommandHere } from '../vitest/run-command-here';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const { database, idp, environment } = service;
const key = (id: string) => `auth:user-id-by-idp:${id}`;
const cached = (id: string) => service.kv.engine.call('GET', key(id));
const command = (name: 'show' | 'forget', ...args: string[]) =>
  runCommand(`users/${name}`, args, environment);
const show = (id: string) => runCommandHere(() => import('../../commands/users/show'), [id], environment);
const forget = (...args: string[]) =>
  runCommandHere(() => import('../../commands/users/forget'), args, environment);
const signUp = (name: string) => idp.createUser({ email: `${name}@private.example` });
/** Makes a request with a session of a user, and returns the internal id. */
async function visit(id: string): Promise<string> {
  const { status, body } = await me(service.url, tokenFor(idp, id));
  expect(status).toBe(200);
  return String(Object(body).userId);
}
/** Runs the deletion of the command in this process, and this in place of its pause. */
async function forgetMeanwhile(
  id: string,
  userId: string | undefined,
  meanwhile: () => Promise<unknown> = async () => undefined,
): Promise<string> {
  return (await import('#lib/users/forget')).forget(id, userId, meanwhile);
}

beforeAll(() => {
  Object.assign(process.env, environment);
  return async () => {
    await (await import('#lib/storage/database')).closeDatabase();
    // The next file may run in this process.
    for (const name of Object.keys(environment)) delete process.env[name];
  };
});

test('a user is shown by either id, without a name or an address', async () => {
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

test('a user of whom nobody knows is shown as none, and a stranger in the cache is told', async () => {
  await service.kv.engine.call('SET', key('user_nobody'), '019a0000-0000-7000-8000-000000000000');
  const { exit, stdout } = await show('user_nobody');
  expect(exit).toBe(1);
  expect(stdout).toMatch(
    /internal id +none.*\n.*\ncache +CONTAINS ANOTHER ID: 019a\S+\nprovider +has no such user\n$/s,
  );
});

test('a forgotten user has neither row nor cached id, and is told to come back while the provider has the user', async () => {
  const user = signUp('forgotten');
  const userId = await visit(user.id);
  expect(await cached(user.id)).toBe(userId);
  const { exit, stdout } = await command('forget', userId, '--yes');
  expect({ exit, rows: await database.rowsOf(user.id), cached: await cached(user.id) }).toEqual({
    exit: 0,
    rows: [],
    cached: null,
  });
  expect(stdout).toContain('The identity provider still has this user. The next request creates a new link');
  expect(stdout).toMatch(/The row and the cached id of this user are deleted\.\n$/);
  expect(stdout).not.toContain('@');
  expect(await visit(user.id)).not.toBe(userId);
});

test('a look-up that read the row before it was deleted leaves no cached id behind', async () => {
  const id = 'user_in_a_race';
  const { pid, url } = soleProcess();
  const userId = await visit(id);
  await service.kv.engine.call('DEL', key(id));
  // It is stopped when its question is on the way, and has the answer before it in the end.
  const listening = database.proxy.onClientData;
  let asked = false;
  database.proxy.onClientData = (chunk) => {
    listening?.(chunk);
    if (asked || !chunk.includes(id)) return;
    asked = true;
    process.kill(pid, 'SIGSTOP');
  };
  const underWay = send(`${url}/users/v1/me`, { headers: bearer(tokenFor(idp, id)) });
  try {
    await expect.poll(() => asked).toBe(true);
    await expect.poll(answersSent).toBe(true);
    const came = await forgetMeanwhile(id, userId, async () => {
      expect(await database.rowsOf(id)).toEqual([]);
      process.kill(pid, 'SIGCONT');
      // It hands out the old id, and stores it: what the last deletion is for.
      expect(await underWay).toMatchObject({ status: 200, body: { userId } });
      expect(await cached(id)).toBe(userId);
    });
    expect(came).toBe('forgotten');
  } finally {
    process.kill(pid, 'SIGCONT');
    database.proxy.onClientData = listening;
  }
  expect(await cached(id)).toBeNull();
  const next = await visit(id);
  expect(next).not.toBe(userId);
  expect(await database.rowsOf(id)).toMatchObject([{ id: next }]);
});

function soleProcess() {
  const [process] = service.processes;
  if (process === undefined) throw new Error('A service has a process');
  return process;
}

/** Whether the database has answered what it was asked. */
async function answersSent(): Promise<boolean> {
  const { rows } = await database.pool.query(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`,
  );
  return rows.length === 0;
}

test('whoever comes meanwhile is linked anew, with a row behind the cached id, and that is said', async () => {
  const id = 'user_who_comes_back';
  const userId = await visit(id);
  let next = '';
  const came = await forgetMeanwhile(id, userId, async () => {
    next = await visit(id);
  });
  expect(came).toBe('relinked');
  expect(next).not.toBe(userId);
  expect(await database.rowsOf(id)).toMatchObject([{ id: next }]);
  expect([null, next]).toContain(await cached(id));
});

test('a cached id whose row is gone already is forgotten too', async () => {
  const id = 'user_half_forgotten';
  await visit(id);
  await database.pool.query('DELETE FROM users WHERE identity_provider_user_id = $1', [id]);
  expect(await forgetMeanwhile(id, undefined)).toBe('forgotten');
  expect(await cached(id)).toBeNull();
});

test('a foreign key decides: one refuses in words and nothing is lost, the other takes its rows along', async () => {
  const [kept, gone] = ['user_with_notes_kept', 'user_with_notes_gone'] as const;
  const [keptId, goneId] = [await visit(kept), await visit(gone)];
  await database.pool.query(`
    CREATE TABLE notes_kept (user_id UUID NOT NULL REFERENCES users (id) ON DELETE RESTRICT);
    CREATE TABLE notes_gone (user_id UUID NOT NULL REFERENCES users (id) ON DELETE CASCADE);
    INSERT INTO notes_kept VALUES ('${keptId}');
    INSERT INTO notes_gone VALUES ('${goneId}')`);
  const refused = await forget(kept, '--yes');
  expect(refused).toMatchObject({
    exit: 1,
    stderr: '',
    stdout: expect.stringMatching(/Nothing was deleted, because a foreign key .* ON DELETE/),
  });
  expect(await database.rowsOf(kept)).toHaveLength(1);
  expect(await visit(kept)).toBe(keptId);
  expect(await forgetMeanwhile(gone, goneId)).toBe('forgotten');
  expect((await database.pool.query('SELECT * FROM notes_gone')).rows).toEqual([]);
  await database.pool.query('DROP TABLE notes_kept, notes_gone');
});

test('without somebody to answer, without a cache, or with a word too many, nothing is deleted', async () => {
  const id = 'user_who_stays';
  const userId = await visit(id);
  const unasked = await command('forget', id);
  const several = await forget(id, userId, '--yes');
  expect(unasked).toMatchObject({
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

test('an id that is the internal id of one and the other id of another is not guessed at', async () => {
  const userId = await visit('user_first_of_two');
  await register(service.url, tokenFor(idp, 'user_caller'), { identityProviderUserId: userId });
  const { exit, stderr } = await forget(userId, '--yes');
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: expect.stringContaining('Pass the other id') });
  expect(await database.rowsOf(userId)).toHaveLength(1);
});

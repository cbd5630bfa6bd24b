import { Client } from 'pg';
import { expect, test } from 'vitest';
import { API, createProject, projectsOptions, request, userIdOf } from '../harness/projects';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService(projectsOptions));
const project = await createProject(service, 'user_ada');
const [adaId, bobId] = [await userIdOf(service, 'user_ada'), await userIdOf(service, 'user_bob')];
await request(service, 'user_ada', 'POST', `${API}/${project}/members`, { user: 'user_bob' });
const note = (user: string, method: string, body?: unknown) =>
  request(service, user, method, `${API}/${project}/note`, body);

test('Users whose concurrent requests share database connections read only their own notes', async () => {
  await note('user_ada', 'PUT', { text: 'Of Ada' });
  await note('user_bob', 'PUT', { text: 'Of Bob' });
  const users = Array.from({ length: 30 }, (_, n) => (n % 2 === 0 ? 'user_ada' : 'user_bob'));
  const read = users.map(async (user) => `${user}: ${Object((await note(user, 'GET')).body).text}`);
  expect(new Set(await Promise.all(read))).toEqual(new Set(['user_ada: Of Ada', 'user_bob: Of Bob']));
});

test('The row-level security policy limits each statement to the notes of the user in app.user_id', async () => {
  const client = new Client(String(service.environment['DATABASE_URL']));
  await client.connect();
  /** Runs a statement in a transaction that sets `app.user_id` to this user. */
  const asUser = async (userId: string, statement: string) => {
    await client.query('BEGIN');
    await client.query(`SELECT set_config('app.user_id', $1, true)`, [userId]);
    return (await client.query(statement).finally(() => client.query('COMMIT'))).rows;
  };
  const all = 'SELECT text FROM project_notes';
  expect(await asUser(adaId, all)).toEqual([{ text: 'Of Ada' }]);
  await asUser(bobId, 'DELETE FROM project_notes WHERE text = $$Of Ada$$');
  expect(await asUser(adaId, all)).toEqual([{ text: 'Of Ada' }]);
  expect((await client.query(all)).rows, 'after the transaction').toEqual([]);
  const upsert = `INSERT INTO project_notes (project_id, user_id, text) VALUES ('${project}', '${bobId}', 'x')
    ON CONFLICT (project_id, user_id) DO UPDATE SET text = 'x'`;
  await expect(asUser(adaId, upsert)).rejects.toMatchObject({ code: '42501' });
  await client.end();
});

import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hasPgBouncer, startPgBouncer } from '../harness/dependencies/pgbouncer';
import { API, createProject, request, startProjectsService, userIdOf } from '../harness/projects';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startProjectsService());
const { pool } = service.database;

const project = await createProject(service, 'user_ada');
const adaId = await userIdOf(service, 'user_ada');
const bobId = await userIdOf(service, 'user_bob');
await request(service, 'user_ada', 'POST', `${API}/${project}/members`, { user: 'user_bob' });

const note = (user: string, method: string, body?: unknown) =>
  request(service, user, method, `${API}/${project}/note`, body);
await note('user_ada', 'PUT', { text: 'Of Ada' });
await note('user_bob', 'PUT', { text: 'Of Bob' });

/** Opens a database connection with the role of the service. */
async function connectAsService(): Promise<Client> {
  const url = new URL(String(pool.options.connectionString));
  const client = new Client(
    Object.assign(url, { username: service.role, password: 'password-of-the-role' }).href,
  );
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** Runs a statement in a transaction that sets `app.user_id` to this user. */
async function asUser(client: Client, userId: string, statement: string): Promise<unknown[]> {
  await client.query('BEGIN');
  try {
    await client.query(`SELECT set_config('app.user_id', $1, true)`, [userId]);
    return (await client.query(statement)).rows;
  } finally {
    await client.query('COMMIT');
  }
}
const ALL = 'SELECT text FROM project_notes';

test('Users of the same project read and change only their own note', async () => {
  expect(await note('user_ada', 'GET')).toMatchObject({ status: 200, body: { text: 'Of Ada' } });
  expect(await note('user_bob', 'PUT', { text: 'Of Bob, again' })).toMatchObject({ status: 200 });
  expect(await note('user_bob', 'PUT', { text: 'Of Bob' })).toMatchObject({ status: 200 });
  expect(await note('user_ada', 'GET')).toMatchObject({ status: 200, body: { text: 'Of Ada' } });
});

test('The row-level security policy limits a SELECT and a DELETE to the notes of the user in app.user_id', async () => {
  const client = await connectAsService();
  expect(await asUser(client, adaId, ALL)).toEqual([{ text: 'Of Ada' }]);
  expect(await asUser(client, bobId, ALL)).toEqual([{ text: 'Of Bob' }]);
  await asUser(client, bobId, 'DELETE FROM project_notes WHERE text = $$Of Ada$$');
  expect(await asUser(client, adaId, ALL)).toEqual([{ text: 'Of Ada' }]);
});

test('A statement without app.user_id finds no note, even if an earlier transaction on the connection has set app.user_id', async () => {
  const client = await connectAsService();
  expect((await client.query(ALL)).rows).toEqual([]);
  await asUser(client, adaId, ALL);
  expect((await client.query(ALL)).rows).toEqual([]);
});

test('The row-level security policy rejects an upsert of the note of another user', async () => {
  const client = await connectAsService();
  const insert = `INSERT INTO project_notes (project_id, user_id, text) VALUES ('${project}', '${bobId}', 'x')
    ON CONFLICT (project_id, user_id) DO UPDATE SET text = 'x'`;
  await expect(asUser(client, adaId, insert)).rejects.toMatchObject({ code: '42501' });
});

test('Two users whose concurrent requests share database connections read only their own notes', async () => {
  const reads = Array.from({ length: 30 }, async (_, n) => {
    const user = n % 2 === 0 ? 'user_ada' : 'user_bob';
    const { body } = await note(user, 'GET');
    return [user, Object(body).text];
  });
  const read = new Set((await Promise.all(reads)).map((each) => each.join(': ')));
  expect(read).toEqual(new Set(['user_ada: Of Ada', 'user_bob: Of Bob']));
});

const notRun = hasPgBouncer ? '' : ' (NOT RUN: no pgbouncer on this machine)';
describe.skipIf(!hasPgBouncer)(`PgBouncer in transaction mode${notRun}`, () => {
  test('Through PgBouncer, transactions of two users on shared connections find only the notes of their own user', async () => {
    const direct = String(pool.options.connectionString);
    const pooler = await startPgBouncer(direct);
    onTestFinished(() => pooler.stop());
    const clients = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const client = new Client(pooler.through(direct));
        await client.connect();
        return client;
      }),
    );
    // PgBouncer connects only as the superuser of the tests, and row-level security does not apply to a superuser. Each
    // transaction therefore switches to the service's role.
    const readAs = async (client: Client, userId: string) => {
      await client.query('BEGIN');
      await client.query(`SET LOCAL ROLE ${service.role}`);
      await client.query(`SELECT set_config('app.user_id', $1, true)`, [userId]);
      const { rows } = await client.query(ALL);
      await client.query('COMMIT');
      return rows;
    };
    await Promise.all(
      clients.map(async (client, n) => {
        for (let round = 0; round < 20; round += 1) {
          const [userId, text] = (n + round) % 2 === 0 ? [adaId, 'Of Ada'] : [bobId, 'Of Bob'];
          expect(await readAs(client, userId)).toEqual([{ text }]);
        }
        await client.end();
      }),
    );
  });
});

import { Client } from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { runCommand } from '../harness/commands';
import { bearer, deliver, me, send, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const API = '/projects/v1/projects';

/** Privileges of the service's role: some of the grants in docs/deploy.md, and one for the tables of the projects example. */
const PRIVILEGES = `
  GRANT SELECT, INSERT ON users, tenants TO $role;
  GRANT SELECT ON previous_ids TO $role;
  GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_messages, webhook_subjects, pending_deletions TO $role;
  GRANT INSERT ON link_changes TO $role;
  GRANT SELECT, INSERT, UPDATE, DELETE ON projects, project_members, project_notes TO $role`;

// The role of the service is not a superuser, so row-level security applies to it.
const service = stopAfterAll(
  await startTestService({ databaseUrl: async (database) => (await database.createRole(PRIVILEGES)).url }),
);
const { pool } = service.database;

/** Returns a function that sends requests of a user, to whose session an organization belongs. */
const as =
  (user: string, organization = 'org_acme') =>
  (method: string, pathname = '', body?: unknown) =>
    send(`${service.url}${API}${pathname}`, {
      method,
      headers: bearer(tokenFor(service.idp, user, { o: { id: organization, rol: 'member' } })),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
const ada = as('user_ada');
const adaElsewhere = as('user_ada', 'org_other');
const bob = as('user_bob');
const eve = as('user_eve');
const UNKNOWN = '0199a7c4-0000-7000-8000-000000000000';

/** Registers a user and returns the internal id. */
const userIdOf = async (user: string) =>
  z.object({ userId: z.string() }).parse((await me(service.url, tokenFor(service.idp, user))).body).userId;
/** Creates a project of the caller and returns its id. */
const createProject = async (caller = ada, name = 'A project') =>
  z.object({ id: z.string() }).parse((await caller('POST', '', { name })).body).id;

const notFound = { status: 404, body: { message: 'Not found' } };
const forbidden = { status: 403, body: { message: 'Only an owner may do this' } };

test('A user creates, reads, lists, renames and deletes a project', async () => {
  const created = await ada('POST', '', { name: 'Apollo' });
  const project = { id: Object(created.body).id, name: 'Apollo', role: 'owner' };
  expect(created).toMatchObject({ status: 201, body: project });
  expect(await ada('GET', `/${project.id}`)).toMatchObject({ status: 200, body: project });
  expect(await ada('GET')).toMatchObject({ status: 200, body: { projects: [project], next: null } });
  expect(await ada('GET', `?after=${project.id}`)).toMatchObject({ body: { projects: [], next: null } });
  expect(await ada('PATCH', `/${project.id}`, { name: 'Artemis' })).toMatchObject({ status: 200 });
  expect(await ada('GET', `/${project.id}`)).toMatchObject({ body: { name: 'Artemis' } });
  expect(await ada('DELETE', `/${project.id}`)).toMatchObject({ status: 204 });
  expect(await ada('GET', `/${project.id}`)).toMatchObject(notFound);
});

test.each([
  ['A user that is not a member of a project', eve],
  ['An owner whose session has another active organization', adaElsewhere],
])('%s gets the same 404 from each operation as for a project that does not exist', async (_who, send) => {
  const id = await createProject();
  for (const project of [id, UNKNOWN, 'x', 'a%00b']) {
    expect(await send('GET', `/${project}`)).toMatchObject(notFound);
    expect(await send('PATCH', `/${project}`, { name: 'Mine' })).toMatchObject(notFound);
    expect(await send('DELETE', `/${project}`)).toMatchObject(notFound);
    expect(await send('GET', `/${project}/members`)).toMatchObject(notFound);
    expect(await send('POST', `/${project}/members`, { user: 'user_eve' })).toMatchObject(notFound);
    expect(await send('GET', `/${project}/note`)).toMatchObject(notFound);
    expect(await send('PUT', `/${project}/note`, { text: 'Hello' })).toMatchObject(notFound);
  }
  expect(await send('GET')).toMatchObject({ body: { projects: [], next: null } });
});

test('A member can read a project, and gets a 403 for the operations of an owner', async () => {
  const id = await createProject();
  const bobId = await userIdOf('user_bob');
  expect(await ada('POST', `/${id}/members`, { user: 'user_bob' })).toMatchObject({ status: 201 });
  expect(await bob('GET', `/${id}`)).toMatchObject({ status: 200, body: { role: 'member' } });
  const members = [
    { userId: await userIdOf('user_ada'), role: 'owner' },
    { userId: bobId, role: 'member' },
  ];
  expect(await bob('GET', `/${id}/members`)).toMatchObject({ status: 200, body: { members } });
  expect(await bob('PATCH', `/${id}`, { name: 'Ours' })).toMatchObject(forbidden);
  expect(await bob('DELETE', `/${id}`)).toMatchObject(forbidden);
  expect(await bob('POST', `/${id}/members`, { user: 'user_eve' })).toMatchObject(forbidden);
});

test('An owner adds a colleague once, by internal or identity-provider id, and gets a 404 for an unknown user', async () => {
  const id = await createProject();
  const carolId = await userIdOf('user_carol');
  await userIdOf('user_bob');
  const add = (user: string) => ada('POST', `/${id}/members`, { user });
  expect(await add(carolId.toUpperCase())).toMatchObject({ status: 201, body: { userId: carolId } });
  const added = await Promise.all([1, 2, 3, 4].map(() => add('user_bob')));
  expect(added.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409]);
  for (const user of ['user_unknown', UNKNOWN])
    expect(await add(user)).toMatchObject({ status: 404, body: { message: 'No such user' } });
});

test('A missing or invalid name gets a 400, a request without a session a 401, without an active organization a 403, and a public route a 200', async () => {
  for (const body of [{}, [], { name: '' }, { name: 7 }, { name: 'a\0b' }, { name: 'x'.repeat(101) }])
    expect(await ada('POST', '', body)).toMatchObject({ status: 400 });
  expect(await send(`${service.url}${API}`)).toMatchObject({ status: 401 });
  const headers = bearer(tokenFor(service.idp, 'user_ada'));
  expect(await send(`${service.url}${API}`, { headers })).toMatchObject({ status: 403 });
  expect(await send(`${service.url}/projects/v1/limits`)).toMatchObject({ status: 200 });
});

test('The requests of a deleted organization get a 403, and `tenants due` deletes its projects with their members and notes, and no others', async () => {
  const [gone, kept] = [as('user_ada', 'org_gone'), as('user_ada', 'org_kept')];
  const id = await createProject(gone, 'Apollo');
  const other = await createProject(kept, 'Artemis');
  expect(await gone('PUT', `/${id}/note`, { text: 'Private' })).toMatchObject({ status: 200 });
  expect(await kept('PUT', `/${other}/note`, { text: 'Private' })).toMatchObject({ status: 200 });
  const deleted = JSON.stringify({ type: 'organization.deleted', data: { id: 'org_gone', deleted: true } });
  for (const _repeated of [1, 2]) expect(await deliver(service.url, deleted)).toMatchObject({ status: 200 });
  expect(await gone('POST', '', { name: 'Too late' })).toMatchObject({ status: 403 });
  await pool.query('UPDATE pending_deletions SET due_at = now()');
  const environment = { ...service.environment, DATABASE_URL: service.database.url };
  expect(await runCommand('tenants', ['due'], environment)).toMatchObject({ exit: 0 });
  for (const table of ['project_members', 'project_notes']) {
    const { rows } = await pool.query(`SELECT project_id FROM ${table} WHERE project_id IN ($1, $2)`, [
      id,
      other,
    ]);
    expect(rows, table).toEqual([{ project_id: other }]);
  }
  expect(await kept('GET', `/${other}/note`)).toMatchObject({ body: { text: 'Private' } });
});

describe('Row-level security', async () => {
  const client = new Client(String(service.environment['DATABASE_URL']));
  await client.connect();
  afterAll(() => client.end());

  // Ada owns a project in each of two organizations. Bob is a member of the first one.
  const [adaAtOne, adaAtTwo] = [as('user_ada', 'org_one'), as('user_ada', 'org_two')];
  const project = await createProject(adaAtOne, 'Apollo');
  const other = await createProject(adaAtTwo, 'Gemini');
  const [adaId, bobId] = [await userIdOf('user_ada'), await userIdOf('user_bob')];
  await adaAtOne('POST', `/${project}/members`, { user: 'user_bob' });
  const NOTES = [
    [adaAtOne, project, 'Of Ada'],
    [as('user_bob', 'org_one'), project, 'Of Bob'],
    [adaAtTwo, other, 'Of Ada elsewhere'],
  ] as const;
  for (const [caller, id, text] of NOTES) await caller('PUT', `/${id}/note`, { text });

  const tenantOf = async (id: string): Promise<string> =>
    (await pool.query('SELECT tenant_id FROM projects WHERE id = $1', [id])).rows[0].tenant_id;
  const [tenant, otherTenant] = [await tenantOf(project), await tenantOf(other)];

  /** Runs a statement with the role of the service, in a transaction that sets a tenant, and Ada as the user. */
  async function asAda(tenantId: string, statement: string): Promise<unknown[]> {
    const setIds = `SELECT set_config('app.tenant_id', $1, true), set_config('app.user_id', $2, true)`;
    await client.query('BEGIN');
    await client.query(setIds, [tenantId, adaId]);
    const { rows } = await client.query(statement).finally(() => client.query('COMMIT'));
    return rows.map(({ shown }) => shown);
  }

  test('Callers whose concurrent requests share database connections read only their own notes', async () => {
    const read = Array.from({ length: 10 }, () => NOTES)
      .flat()
      .map(async ([caller, id, text]) => {
        expect(await caller('GET', `/${id}/note`)).toMatchObject({ body: { text } });
      });
    await Promise.all(read);
  });

  test('With a tenant set, a statement without conditions returns only rows of the tenant. Without one, it returns none', async () => {
    const all = `SELECT name AS shown FROM projects UNION ALL
    SELECT DISTINCT project_id::text FROM project_members UNION ALL SELECT text FROM project_notes`;
    expect(await asAda(tenant, all)).toEqual(['Apollo', project, 'Of Ada']);
    expect(await asAda(otherTenant, all)).toEqual(['Gemini', other, 'Of Ada elsewhere']);
    expect(await asAda('', all)).toEqual([]);
    expect((await client.query(all)).rows, 'after the transaction').toEqual([]);
  });

  test('A statement changes no row of another tenant or user, and adds none', async () => {
    for (const statement of [
      `UPDATE projects SET name = 'Mine' WHERE id = '${other}' RETURNING id AS shown`,
      `DELETE FROM projects WHERE id = '${other}' RETURNING id AS shown`,
      `UPDATE project_members SET role = 'member' WHERE project_id = '${other}' RETURNING role AS shown`,
      `DELETE FROM project_notes WHERE text <> 'Of Ada' RETURNING text AS shown`,
    ])
      expect(await asAda(tenant, statement), statement).toEqual([]);
    const upsertNote = (id: string, userId: string) => `INSERT INTO project_notes
    VALUES ('${id}', '${userId}', 'x') ON CONFLICT (project_id, user_id) DO UPDATE SET text = 'x'`;
    for (const statement of [
      `INSERT INTO projects VALUES (gen_random_uuid(), '${otherTenant}', 'x')`,
      `UPDATE projects SET tenant_id = '${otherTenant}'`,
      `INSERT INTO project_members VALUES ('${other}', '${bobId}', 'owner')`,
      upsertNote(other, adaId),
      upsertNote(project, bobId),
    ])
      await expect(asAda(tenant, statement), statement).rejects.toMatchObject({ code: '42501' });
  });
});

import { Client } from 'pg';
import { afterAll, expect, test } from 'vitest';
import { API, createProject, projectsOptions, request, userIdOf } from '../harness/projects';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService(projectsOptions));
const client = new Client(String(service.environment['DATABASE_URL']));
await client.connect();
afterAll(() => client.end());

// Ada owns a project in each of two organizations. Bob is a member of the first one.
const project = await createProject(service, 'user_ada', 'Apollo', 'org_acme');
const other = await createProject(service, 'user_ada', 'Gemini', 'org_other');
const [adaId, bobId] = [await userIdOf(service, 'user_ada'), await userIdOf(service, 'user_bob')];
await request(service, 'user_ada', 'POST', `${API}/${project}/members`, { user: 'user_bob' });
const note = (user: string, id: string, organization: string, method: string, body?: unknown) =>
  request(service, user, method, `${API}/${id}/note`, body, organization);
const NOTES = [
  ['user_ada', project, 'org_acme', 'Of Ada'],
  ['user_bob', project, 'org_acme', 'Of Bob'],
  ['user_ada', other, 'org_other', 'Of Ada elsewhere'],
] as const;
for (const [user, id, organization, text] of NOTES) await note(user, id, organization, 'PUT', { text });

const tenantOf = async (id: string): Promise<string> =>
  (await service.database.pool.query('SELECT tenant_id FROM projects WHERE id = $1', [id])).rows[0].tenant_id;
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
    .map(async ([user, id, organization, text]) => {
      expect(await note(user, id, organization, 'GET')).toMatchObject({ body: { text } });
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

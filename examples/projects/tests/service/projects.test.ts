import { expect, test } from 'vitest';
import { runCommand } from '../harness/commands';
import { API, createProject, memberToken, projectsOptions, request, userIdOf } from '../harness/projects';
import { bearer, deliver, send } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService(projectsOptions));
const { pool } = service.database;

const as =
  (user: string, organization?: string) =>
  (method: string, pathname = '', body?: unknown) =>
    request(service, user, method, `${API}${pathname}`, body, organization);
const ada = as('user_ada');
const adaElsewhere = as('user_ada', 'org_other');
const bob = as('user_bob');
const eve = as('user_eve');
const UNKNOWN = '0199a7c4-0000-7000-8000-000000000000';

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
  const id = await createProject(service, 'user_ada');
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
  const id = await createProject(service, 'user_ada');
  const bobId = await userIdOf(service, 'user_bob');
  expect(await ada('POST', `/${id}/members`, { user: 'user_bob' })).toMatchObject({ status: 201 });
  expect(await bob('GET', `/${id}`)).toMatchObject({ status: 200, body: { role: 'member' } });
  const members = [
    { userId: await userIdOf(service, 'user_ada'), role: 'owner' },
    { userId: bobId, role: 'member' },
  ];
  expect(await bob('GET', `/${id}/members`)).toMatchObject({ status: 200, body: { members } });
  expect(await bob('PATCH', `/${id}`, { name: 'Ours' })).toMatchObject(forbidden);
  expect(await bob('DELETE', `/${id}`)).toMatchObject(forbidden);
  expect(await bob('POST', `/${id}/members`, { user: 'user_eve' })).toMatchObject(forbidden);
});

test('An owner adds a colleague once, by internal or identity-provider id, and gets a 404 for an unknown user', async () => {
  const id = await createProject(service, 'user_ada');
  const carolId = await userIdOf(service, 'user_carol');
  await userIdOf(service, 'user_bob');
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
  const headers = bearer(memberToken(service, 'user_ada'));
  expect(await send(`${service.url}${API}`, { headers })).toMatchObject({ status: 403 });
  expect(await send(`${service.url}/projects/v1/limits`)).toMatchObject({ status: 200 });
});

test('The requests of a deleted organization get a 403, and `tenants due` deletes its projects with their members and notes, and no others', async () => {
  const [gone, kept] = [as('user_ada', 'org_gone'), as('user_ada', 'org_kept')];
  const id = await createProject(service, 'user_ada', 'Apollo', 'org_gone');
  const other = await createProject(service, 'user_ada', 'Artemis', 'org_kept');
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

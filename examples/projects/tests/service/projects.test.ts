import { expect, test } from 'vitest';
import {
  API,
  callAction,
  createProject,
  openPage,
  projectsOptions,
  request,
  userIdOf,
} from '../harness/projects';
import { deliver, send, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService(projectsOptions));
const { pool } = service.database;

const as =
  (user: string) =>
  (method: string, pathname = '', body?: unknown) =>
    request(service, user, method, `${API}${pathname}`, body);
const ada = as('user_ada');
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

test('A user that is not a member of a project gets the same 404 from each operation as for a project that does not exist', async () => {
  const id = await createProject(service, 'user_ada');
  for (const project of [id, UNKNOWN, 'x', 'a%00b']) {
    expect(await eve('GET', `/${project}`)).toMatchObject(notFound);
    expect(await eve('PATCH', `/${project}`, { name: 'Mine' })).toMatchObject(notFound);
    expect(await eve('DELETE', `/${project}`)).toMatchObject(notFound);
    expect(await eve('GET', `/${project}/members`)).toMatchObject(notFound);
    expect(await eve('POST', `/${project}/members`, { user: 'user_eve' })).toMatchObject(notFound);
    expect(await eve('PUT', `/${project}/note`, { text: 'Hello' })).toMatchObject(notFound);
  }
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

test('A missing or invalid name gets a 400, a request without a session a 401, and a public route a 200', async () => {
  for (const body of [{}, [], { name: '' }, { name: 7 }, { name: 'a\0b' }, { name: 'x'.repeat(101) }])
    expect(await ada('POST', '', body)).toMatchObject({ status: 400 });
  expect(await send(`${service.url}${API}`)).toMatchObject({ status: 401 });
  expect(await send(`${service.url}/projects/v1/limits`)).toMatchObject({ status: 200 });
});

test('The page of a project is a 404 for a user without a membership, and redirects to the sign-in page without a session', async () => {
  const id = await createProject(service, 'user_ada', 'Apollo');
  const open = (user?: string) => openPage(service, `/projects/${id}`, user && tokenFor(service.idp, user));
  const stranger = await open('user_eve');
  const { status, headers, body } = await open();
  expect(await open('user_ada')).toMatchObject({ status: 200, body: expect.stringContaining('Apollo') });
  expect([stranger.status, status]).toEqual([404, 307]);
  expect(headers.get('location')).toBe(`/sign-in?redirect_url=%2Fprojects%2F${id}`);
  expect(`${stranger.body}${body}`).not.toContain('Apollo');
});

test('A server action runs for an owner, returns a 403 to a member and a 404 to a stranger, and redirects without a session', async () => {
  const id = await createProject(service, 'user_ada', 'Apollo');
  await userIdOf(service, 'user_bob');
  await ada('POST', `/${id}/members`, { user: 'user_bob' });
  const rename = (name: string, user?: string) =>
    callAction(service, 'renameProject', { projectId: id, name }, user && tokenFor(service.idp, user));
  expect((await rename('Artemis', 'user_ada')).body).toContain('"ok":true');
  expect((await rename('Ours', 'user_bob')).body).toContain('"ok":false,"status":403');
  expect((await rename('Mine', 'user_eve')).body).toContain('"ok":false,"status":404');
  expect((await rename('Mine')).headers.get('x-action-redirect')).toBe(
    '/sign-in?redirect_url=%2Fprojects;push',
  );
  expect(await ada('GET', `/${id}`)).toMatchObject({ body: { name: 'Artemis' } });
});

test('The event user.deleted deletes the memberships and notes of the user, and the projects that have no other member', async () => {
  const alone = await createProject(service, 'user_gone');
  const shared = await createProject(service, 'user_gone');
  const gone = as('user_gone');
  await userIdOf(service, 'user_bob');
  await gone('POST', `/${shared}/members`, { user: 'user_bob' });
  for (const id of [alone, shared]) await gone('PUT', `/${id}/note`, { text: 'Private' });
  await bob('PUT', `/${shared}/note`, { text: 'Of Bob' });
  const deleted = (id: string) => JSON.stringify({ type: 'user.deleted', data: { id, deleted: true } });
  for (const id of ['user_gone', 'user_gone', 'user_unknown']) {
    expect(await deliver(service.url, deleted(id))).toMatchObject({ status: 200 });
  }
  expect(await bob('GET', `/${shared}/note`)).toMatchObject({ body: { text: 'Of Bob' } });
  const [{ id: userId } = { id: '' }] = await service.database.rowsOf('user_gone');
  for (const table of ['project_members', 'project_notes']) {
    expect((await pool.query(`SELECT FROM ${table} WHERE user_id = $1`, [userId])).rowCount, table).toBe(0);
  }
  expect((await pool.query('SELECT FROM projects WHERE id = $1', [alone])).rowCount).toBe(0);
});

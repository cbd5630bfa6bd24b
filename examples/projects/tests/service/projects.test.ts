import { expect, test } from 'vitest';
import { API, createProject, openPage, request, startProjectsService, userIdOf } from '../harness/projects';
import { deliver, send, tokenFor } from '../harness/requests';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startProjectsService());
const { pool } = service.database;

const as =
  (user: string) =>
  (method: string, pathname = '', body?: unknown) =>
    request(service, user, method, `${API}${pathname}`, body);
const ada = as('user_ada');
const bob = as('user_bob');
const eve = as('user_eve');

const notFound = { status: 404, body: { message: 'Not found' } };
const forbidden = { status: 403, body: { message: 'Only an owner may do this' } };

test('A user creates, reads, renames and deletes a project', async () => {
  const created = await ada('POST', '', { name: 'Apollo' });
  const id = Object(created.body).id;
  expect(created).toMatchObject({
    status: 201,
    body: { id: expect.any(String), name: 'Apollo', role: 'owner' },
  });
  expect(await ada('GET', `/${id}`)).toMatchObject({ status: 200, body: created.body });
  expect(await ada('PATCH', `/${id}`, { name: 'Artemis' })).toMatchObject({ status: 200 });
  expect(await ada('GET', `/${id}`)).toMatchObject({
    status: 200,
    body: { id, name: 'Artemis', role: 'owner' },
  });
  expect(await ada('DELETE', `/${id}`)).toMatchObject({ status: 204 });
  expect(await ada('GET', `/${id}`)).toMatchObject(notFound);
  expect(await ada('DELETE', `/${id}`)).toMatchObject(notFound);
});

test('The pages of the project list contain each project once, in the order of creation, and an invalid cursor gets a 404', async () => {
  const ids: string[] = [];
  for (let n = 0; n < 45; n += 1) ids.push(await createProject(service, 'user_many', `Project ${n}`));
  const read: string[] = [];
  let after = '';
  for (let page = 0; page < 3; page += 1) {
    const { body } = await as('user_many')('GET', after);
    read.push(...Object(body).projects.map(({ id }: { id: string }) => id));
    after = `?after=${Object(body).next}`;
  }
  expect(after).toBe('?after=null');
  expect(read).toEqual(ids);
  expect(await as('user_many')('GET', '?after=x')).toMatchObject(notFound);
});

test('A user that is not a member of a project gets the same 404 from each operation as for a project that does not exist', async () => {
  const id = await createProject(service, 'user_ada');
  for (const project of [id, '0199a7c4-0000-7000-8000-000000000000', 'x', 'a%00b']) {
    expect(await eve('GET', `/${project}`)).toMatchObject(notFound);
    expect(await eve('PATCH', `/${project}`, { name: 'Mine' })).toMatchObject(notFound);
    expect(await eve('DELETE', `/${project}`)).toMatchObject(notFound);
    expect(await eve('GET', `/${project}/members`)).toMatchObject(notFound);
    expect(await eve('POST', `/${project}/members`, { user: 'user_eve' })).toMatchObject(notFound);
    expect(await eve('PUT', `/${project}/note`, { text: 'Hello' })).toMatchObject(notFound);
  }
  expect(await eve('GET')).toMatchObject({ status: 200, body: { projects: [], next: null } });
});

test('A member can read a project, and gets a 403 for the actions of an owner', async () => {
  const id = await createProject(service, 'user_ada');
  const [adaId, bobId] = [await userIdOf(service, 'user_ada'), await userIdOf(service, 'user_bob')];
  expect(await ada('POST', `/${id}/members`, { user: 'user_bob' })).toMatchObject({ status: 201 });
  expect(await bob('GET', `/${id}`)).toMatchObject({ status: 200, body: { role: 'member' } });
  expect(await bob('GET', `/${id}/members`)).toMatchObject({
    status: 200,
    body: {
      members: [
        { userId: adaId, role: 'owner' },
        { userId: bobId, role: 'member' },
      ],
    },
  });
  expect(await bob('PATCH', `/${id}`, { name: 'Ours' })).toMatchObject(forbidden);
  expect(await bob('DELETE', `/${id}`)).toMatchObject(forbidden);
  expect(await bob('POST', `/${id}/members`, { user: 'user_eve' })).toMatchObject(forbidden);
});

test('An owner adds a colleague by internal or identity-provider id, and gets a 409 for a member and a 404 for an unknown user', async () => {
  const id = await createProject(service, 'user_ada');
  const bobId = await userIdOf(service, 'user_bob');
  const carolId = await userIdOf(service, 'user_carol');
  const add = (user: unknown) => ada('POST', `/${id}/members`, { user });
  expect(await add('user_bob')).toMatchObject({ status: 201, body: { userId: bobId, role: 'member' } });
  expect(await add(carolId.toUpperCase())).toMatchObject({ status: 201, body: { userId: carolId } });
  for (const user of ['user_bob', bobId]) {
    expect(await add(user)).toMatchObject({ status: 409, body: { message: 'Already a member' } });
  }
  for (const user of ['user_unknown', '0199a7c4-0000-7000-8000-000000000000']) {
    expect(await add(user)).toMatchObject({ status: 404, body: { message: 'No such user' } });
  }
});

test('One of several concurrent requests to add the same member succeeds, and the others get a 409', async () => {
  const id = await createProject(service, 'user_ada');
  await userIdOf(service, 'user_bob');
  const added = Array.from({ length: 8 }, () => ada('POST', `/${id}/members`, { user: 'user_bob' }));
  const statuses = (await Promise.all(added)).map(({ status }) => status);
  expect(statuses.toSorted()).toEqual([201, ...Array.from({ length: 7 }, () => 409)]);
});

test.each([
  {},
  [],
  { name: '' },
  { name: 7 },
  { name: 'a\0b' },
  { name: '\ud800' },
  { name: 'x'.repeat(101) },
])('A request to create a project with a missing or invalid name gets a 400: %j', async (body) => {
  expect((await ada('POST', '', body)).status).toBe(400);
});

test('A request without a session gets a 401 from a guarded route and a 200 from a route without a guard', async () => {
  expect(await send(`${service.url}${API}`)).toMatchObject({
    status: 401,
    body: { message: 'Unauthorized' },
  });
  expect(await send(`${service.url}/projects/v1/limits`)).toMatchObject({
    status: 200,
    body: { maxNameLength: 100, pageSize: 20 },
  });
});

test('Pages and API routes can share the first path segment', async () => {
  const id = await createProject(service, 'user_ada', 'Shared');
  const token = tokenFor(service.idp, 'user_ada');
  for (const page of ['/projects', `/projects/${id}`]) {
    const { status, body, headers } = await openPage(service, page, token);
    expect({ status, type: headers.get('content-type') }).toMatchObject({ status: 200, type: /html/ });
    expect(body).toContain('Shared');
  }
  expect(await send(`${service.url}/projects/v1/unknown`)).toMatchObject(notFound);
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
  expect(await bob('GET', `/${shared}`)).toMatchObject({ status: 200 });
  expect(await bob('GET', `/${shared}/note`)).toMatchObject({ body: { text: 'Of Bob' } });
  const [{ id: userId } = { id: '' }] = await service.database.rowsOf('user_gone');
  for (const table of ['project_members', 'project_notes']) {
    expect((await pool.query(`SELECT FROM ${table} WHERE user_id = $1`, [userId])).rowCount, table).toBe(0);
  }
  expect((await pool.query('SELECT FROM projects WHERE id = $1', [alone])).rowCount).toBe(0);
});

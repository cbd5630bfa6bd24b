import { describe, expect, onTestFinished, test } from 'vitest';
import { startOtlpReceiver } from '../harness/dependencies/otlp-receiver';
import {
  API,
  actionId,
  callAction,
  createProject,
  openPage,
  request,
  startProjectsService,
  userIdOf,
} from '../harness/projects';
import { now, tokenFor } from '../harness/requests';
import { otelVariables } from '../harness/telemetry';
import { stopAfterAll } from '../vitest/stop-after-all';

const receiver = stopAfterAll(await startOtlpReceiver());
const service = stopAfterAll(await startProjectsService(otelVariables(receiver)));
const { pool } = service.database;
const userId = await userIdOf(service, 'user_ada');
const id = await createProject(service, 'user_ada', 'Apollo');
const page = `/projects/${id}`;
await userIdOf(service, 'user_bob');
await request(service, 'user_ada', 'POST', `${API}/${id}/members`, { user: 'user_bob' });

const token = (user: string, claims: object = {}) => tokenFor(service.idp, user, { ...claims });
const WITHOUT_SESSION = [
  ['no session', () => undefined],
  ['an expired session', () => token('user_ada', { iat: now() - 900, nbf: now() - 900, exp: now() - 300 })],
  ['a pending session', () => token('user_ada', { sts: 'pending' })],
] as const;

const rename = (session: string | undefined, name: string) =>
  callAction(service, {
    id: actionId('renameProject'),
    input: { projectId: id, name },
    token: session,
    page,
  });
const currentName = async () =>
  (await pool.query('SELECT name FROM projects WHERE id = $1', [id])).rows[0]?.name;
const SIGN_IN = `/sign-in?redirect_url=${encodeURIComponent(page)}`;

describe.each(WITHOUT_SESSION)('Requests with %s', (session, create) => {
  test(`With ${session}, a page whose component calls getUser shows "Signed out" and no user id`, async () => {
    const { status, body } = await openPage(service, '/projects', create());
    expect(status).toBe(200);
    expect(body).toContain('Signed out');
    expect(body).not.toContain(userId);
  });

  test(`With ${session}, a page that calls requireUser redirects to the sign-in page with its own path as redirect_url`, async () => {
    const { status, headers, body } = await openPage(service, page, create());
    expect({ status, location: headers.get('location') }).toEqual({ status: 307, location: SIGN_IN });
    expect(body).not.toContain('Apollo');
  });

  test(`With ${session}, a browser navigation to a page that calls requireUser gets a redirect without the content of the page`, async () => {
    const { status, body } = await openPage(service, page, create(), 'document');
    expect(status).toBe(307);
    expect(body).not.toContain('Apollo');
  });

  test(`With ${session}, an action redirects to the sign-in page, and its handler does not run`, async () => {
    const { headers } = await rename(create(), 'Changed');
    expect(headers.get('x-action-redirect')).toBe(`${SIGN_IN};push`);
    expect(await currentName()).toBe('Apollo');
  });
});

describe('Users that do not own the project', () => {
  test('A page whose component calls getUser shows the internal id of the signed-in user, and no project of another user', async () => {
    const { body } = await openPage(service, '/projects', token('user_eve'));
    expect(body).toContain(await userIdOf(service, 'user_eve'));
    expect(body).not.toContain('Apollo');
  });

  test('A user without a membership gets a 404 for the page of a project', async () => {
    const { status, body } = await openPage(service, page, token('user_eve'));
    expect(status).toBe(404);
    expect(body).not.toContain('Apollo');
  });

  test('An action returns a 404 to a user without a membership, and a 403 to a member that is not an owner', async () => {
    for (const [user, status] of [
      ['user_eve', 404],
      ['user_bob', 403],
    ] as const) {
      const { body } = await rename(token(user), 'Changed');
      expect(body).toContain(`"ok":false,"status":${status}`);
    }
    expect(await currentName()).toBe('Apollo');
  });
});

describe('Without the database', () => {
  const withoutDatabase = async () => {
    await service.database.proxy.treat('refuse');
    onTestFinished(() => service.database.proxy.treat('forward'));
  };
  test('During a database outage, a user whose id is not cached gets a 500 page without details', async () => {
    await withoutDatabase();
    const { status, body } = await openPage(service, '/projects', token('user_outage'));
    expect(status).toBe(500);
    expect(body).not.toMatch(/prisma|ECONNREFUSED/i);
  });

  test('During a database outage, a user whose id is cached gets a 500 for a page that reads a project', async () => {
    await withoutDatabase();
    expect((await openPage(service, page, token('user_ada'))).status).toBe(500);
  });

  test('During a database outage, an action gets a 500 without details', async () => {
    await withoutDatabase();
    const { status, body } = await rename(token('user_ada'), 'Changed');
    expect(status).toBe(500);
    expect(body).not.toMatch(/prisma|ECONNREFUSED|Changed/i);
  });
});

describe('Without the cache', () => {
  test('Components, pages and actions work during a cache outage', async () => {
    await service.kv.proxy.treat('refuse');
    onTestFinished(() => service.kv.proxy.treat('forward'));
    const list = await openPage(service, '/projects', token('user_ada'));
    expect(list).toMatchObject({ status: 200, body: expect.stringContaining(userId) });
    const opened = await openPage(service, page, token('user_ada'));
    expect(opened).toMatchObject({ status: 200, body: expect.stringContaining('Apollo') });
    expect((await rename(token('user_ada'), 'Artemis')).status).toBe(200);
    expect(await currentName()).toBe('Artemis');
  });
});

describe('The cost of a page whose components call getUser', () => {
  /** Returns the cache commands of one page request, and the number of SQL statements that look up or insert the user. */
  const costOf = async (user: string) => {
    service.kv.takeCommands();
    service.database.takeStatements();
    const { status } = await openPage(service, '/projects', token(user));
    expect(status).toBe(200);
    return {
      commands: service.kv.takeCommands().map(([command]) => command?.toLowerCase()),
      statements: service.database
        .takeStatements()
        .filter((statement) => statement.includes('identity_provider_user_id')).length,
    };
  };

  test('To find the user, a page whose components call getUser runs one cache GET for a cached user, and a GET, a SET and one SQL statement for an uncached user', async () => {
    const user = 'user_cost';
    await userIdOf(service, user);
    expect(await costOf(user)).toEqual({ commands: ['get'], statements: 0 });
    await service.kv.engine.call('DEL', `auth:user-id-by-idp:${user}`);
    expect(await costOf(user)).toEqual({ commands: ['get', 'set'], statements: 1 });
  });
});

test('The metric identity_link.registrations counts the registrations that a page or an action causes', async () => {
  const created = () =>
    receiver
      .metrics()
      .find(({ name }) => name === 'identity_link.registrations')
      ?.points.find(({ attributes }) => Object.values(attributes).join(' ') === 'request created')?.value;
  await openPage(service, '/projects', token('user_counted_by_page'));
  await rename(token('user_counted_by_action'), 'Changed');
  // Pages, actions and guarded routes have created all users of this file. The metric counts them with the source `request`.
  const { rowCount } = await pool.query('SELECT FROM users');
  await expect.poll(created).toBe(rowCount);
});

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { NextRequest } from 'next/server';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { signVerdict, VERDICT } from '#lib/http/signed-verdict';
import type { HandleRow } from '#lib/tables/outbox';
import { createTestDatabase } from '../harness/dependencies/database';
import { cacheKey } from '../harness/dependencies/kv';
import { lockInserts, lockRow } from '../harness/dependencies/row-lock';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { HOOK, signatureHeaders, userCreated } from '../harness/requests';

const { onboardUser } = vi.hoisted(() => ({ onboardUser: vi.fn<HandleRow>() }));
vi.mock('../../events/onboard-user', () => ({ onboardUser }));
vi.mock('#events', () => ({ events: {} }));

const MIGRATION = readFileSync('prisma/migrations/20261125000000_create_onboarding/migration.sql', 'utf8');
/** The statement that queues the rows that were given up. */
const [QUEUE_AGAIN = ''] = /UPDATE outbox [^`]+/.exec(readFileSync('docs/build.md', 'utf8')) ?? [];
const SECRET = 'secret-of-the-cron-job';
const ROLE = `onboarding_${randomBytes(6).toString('hex')}`;
const { database, kv } = await startInProcess();
const { pool } = database;
/** Loads the routes as another process would. */
const loadRoutes = () =>
  importAsProcess(async () => ({
    me: (await import('../../app/users/v1/me/route')).GET,
    register: (await import('../../app/auth/v1/register/route')).POST,
    webhook: (await import('../../app/webhooks/idp/v1/user-created/route')).POST,
    outbox: (await import('../../app/cron/v1/outbox/route')).GET,
    log: (await import('#lib/base/log')).log,
  }));
const routes = await loadRoutes();
const { closeDatabase } = await importAsProcess(() => import('#lib/storage/database'));

async function send(route: typeof routes.me, init: ConstructorParameters<typeof NextRequest>[1] = {}) {
  const response = await route(new NextRequest(`http://localhost${HOOK}`, init), {
    params: Promise.resolve({}),
  });
  return { status: response.status, body: await response.json() };
}
const session = (user: string) => ({ [VERDICT]: signVerdict({ user }) });
const visit = (user: string, { me } = routes) => send(me, { headers: session(user) });
const deliver = (user: string, { webhook } = routes) =>
  send(webhook, { method: 'POST', headers: signatureHeaders(userCreated(user)), body: userCreated(user) });
const register = (user: string, { register: route } = routes) =>
  send(route, {
    method: 'POST',
    headers: session('user_caller'),
    body: JSON.stringify({ identityProviderUserId: user }),
  });
const work = ({ outbox } = routes) => send(outbox, { headers: { authorization: `Bearer ${SECRET}` } });
const link = (count: number) =>
  pool.query(
    `INSERT INTO users SELECT gen_random_uuid(), 'user_' || n FROM generate_series(1, $1::int) AS n`,
    [count],
  );
const counts = async (from = pool) =>
  (
    await from.query(`SELECT (SELECT count(*)::int FROM users) AS users,
      (SELECT count(DISTINCT owner_id)::int FROM workspaces) AS owners,
      (SELECT count(*)::int FROM workspaces) AS workspaces, (SELECT count(*)::int FROM outbox) AS outbox`)
  ).rows[0];
/** Makes all rows due, and returns the attempts and the pauses in minutes before that. */
async function skipPauses() {
  const { rows } = await pool.query(
    `SELECT attempts, round(extract(epoch FROM due_at - now()) / 60)::int AS minutes FROM outbox`,
  );
  await pool.query('UPDATE outbox SET due_at = now()');
  return rows;
}

// The role has the privileges of docs/deploy.md and of the migration. It may not insert into the tables of the example.
beforeAll(async () => {
  const [role = ''] =
    /CREATE ROLE identity_link_service[^`]+/.exec(readFileSync('docs/deploy.md', 'utf8')) ?? [];
  const grants = MIGRATION.match(/GRANT .+;/g) ?? [];
  const statements = `${role.replace("PASSWORD ''", "PASSWORD 'onboarding'")} ${grants.join('\n')}`;
  await pool.query(statements.replaceAll('identity_link_service', ROLE));
  await closeDatabase();
  const url = Object.assign(new URL(database.url), { username: ROLE, password: 'onboarding' });
  vi.stubEnv('DATABASE_URL', url.href);
  vi.stubEnv('CRON_SECRET', SECRET);
});
afterAll(async () => {
  await closeDatabase();
  await pool.query(`DROP OWNED BY ${ROLE}; DROP ROLE ${ROLE}`);
});
beforeEach(() => void onboardUser.mockReset().mockResolvedValue());
afterEach(async () => {
  await pool.query('DELETE FROM users');
  // ON DELETE CASCADE has deleted the workspaces and the outbox rows.
  expect(await counts()).toEqual({ users: 0, owners: 0, workspaces: 0, outbox: 0 });
  for (const user of ['user_new', 'user_caller']) await kv.engine.call('DEL', cacheKey(user));
});

test('50 first requests, 10 deliveries and 10 register calls for a user in three processes create one workspace and one outbox row', async () => {
  const processes = [routes, await loadRoutes(), await loadRoutes()];
  await visit('user_caller');
  const barrier = await lockInserts(database);
  const calls = Array.from({ length: 70 }, (_, index) => {
    const call = index < 50 ? visit : index < 60 ? deliver : register;
    return call('user_new', processes[index % processes.length]);
  });
  expect(await barrier.waiting(3)).toBe(true);
  await barrier.release();
  for (const { status } of await Promise.all(calls)) expect([200, 201]).toContain(status);
  expect(await counts()).toEqual({ users: 2, owners: 2, workspaces: 2, outbox: 2 });
});

test.each(['P0001', '23505'])(
  'If the trigger raises an error (%s), each entry point responds with 500 and links no user, and the next request links the user',
  async (state) => {
    await visit('user_caller');
    const { rows } = await pool.query(`SELECT pg_get_functiondef('onboard_user'::regproc) AS definition`);
    await pool.query(`CREATE OR REPLACE FUNCTION onboard_user() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'raised by a test' USING ERRCODE = '${state}'; END $$`);
    for (const call of [visit, deliver, register])
      expect(await call('user_new')).toEqual({ status: 500, body: { message: 'Internal Server Error' } });
    expect(await counts()).toMatchObject({ users: 1, workspaces: 1, outbox: 1 });
    expect(await kv.cachedId('user_new')).toBeNull();
    await pool.query(rows[0]?.definition);
    expect(await visit('user_new')).toMatchObject({ status: 200 });
    expect(await counts()).toMatchObject({ users: 2, owners: 2, outbox: 2 });
  },
);

test('The migration creates one workspace and no outbox row for each earlier user, also for one whose link is committed meanwhile', async () => {
  const earlier = await createTestDatabase();
  await earlier.pool.query(`DROP TABLE workspaces, outbox; DROP FUNCTION onboard_user CASCADE;
    INSERT INTO users VALUES (gen_random_uuid(), 'user_earlier')`);
  const open = await lockRow(earlier, 'user_meanwhile');
  const migration = earlier.pool.query(MIGRATION);
  expect(await open.waiting(1)).toBe(true);
  await open.commit();
  await migration;
  expect(await counts(earlier.pool)).toEqual({ users: 2, owners: 2, workspaces: 2, outbox: 0 });
  await earlier.drop();
});

test('Three concurrent calls handle each row once, and a call without due rows handles none', async () => {
  await link(30);
  // No call continues before each of the three calls has a row.
  onboardUser.mockImplementation(() =>
    expect.poll(() => onboardUser.mock.calls.length).toBeGreaterThanOrEqual(3),
  );
  const handled = (await Promise.all([work(), work(), work()])).map(({ body }) => body.handled);
  expect([handled[0] + handled[1] + handled[2], onboardUser.mock.calls.length]).toEqual([30, 30]);
  expect(new Set(onboardUser.mock.calls.map(([{ userId }]) => userId)).size).toBe(30);
  expect(await work()).toEqual({ status: 200, body: { handled: 0 } });
});

test('A call handles at most 100 rows', async () => {
  await link(101);
  expect([await work(), await work()]).toMatchObject([{ body: { handled: 100 } }, { body: { handled: 1 } }]);
});

test('A row that fails does not block the others, and is handled again with the same key after pauses that double up to 4 hours', async () => {
  await link(3);
  onboardUser.mockRejectedValueOnce(new Error('The mail server rejects ada@example.com'));
  expect(await work()).toMatchObject({ status: 200, body: { handled: 2 } });
  expect(await work()).toMatchObject({ body: { handled: 0 } });
  expect(await skipPauses()).toEqual([{ attempts: 1, minutes: 1 }]);
  await pool.query('UPDATE outbox SET attempts = 40');
  onboardUser.mockRejectedValueOnce(new Error());
  await work();
  expect(await skipPauses()).toEqual([{ attempts: 41, minutes: 256 }]);
  expect(await work()).toMatchObject({ body: { handled: 1 } });
  const [failed, ...others] = onboardUser.mock.calls.map(([, idempotencyKey]) => idempotencyKey);
  expect(others.filter((key) => key === failed)).toHaveLength(2);
});

test('A row is given up 23 hours after its first attempt, logged as an error once by three processes, and handled again after the statement of the guide', async () => {
  const processes = [routes, await loadRoutes(), await loadRoutes()];
  const errors = processes.map(({ log }) => vi.spyOn(log, 'error').mockReturnValue());
  const workLater = async (hours: string) => {
    await pool.query(`UPDATE outbox SET due_at = now() WHERE due_at IS NOT NULL;
      UPDATE outbox SET first_attempt_at = now() - interval '${hours} hours' WHERE attempts > 0`);
    await Promise.all(processes.map(work));
    return onboardUser.mock.calls.length;
  };
  onboardUser.mockRejectedValue(new Error());
  await link(30);
  await pool.query(`UPDATE outbox SET created_at = now() - interval '9 days'`);
  expect([await workLater('0'), await workLater('22.9')]).toEqual([30, 60]);
  expect([await workLater('23.1'), await workLater('48')]).toEqual([60, 60]);
  const lines = errors.flatMap(({ mock }) => mock.calls);
  expect([lines.length, new Set(lines.map(([fields]) => JSON.stringify(fields))).size]).toEqual([30, 30]);
  onboardUser.mockResolvedValue();
  await pool.query(QUEUE_AGAIN);
  expect(await work()).toMatchObject({ body: { handled: 30 } });
});

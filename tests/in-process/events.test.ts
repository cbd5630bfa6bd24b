import { NextRequest } from 'next/server';
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { log } from '#lib/base/log';
import { defineEvent, type EventContext } from '#lib/events';
import { closeDatabase } from '#lib/storage/database';
import { POST } from '../../app/webhooks/idp/v1/user-created/route';
import { forgetDeletedUser } from '../../events/forget-deleted-user';
import { BUILD_TIME_VALUES } from '../harness/build';
import { createTestDatabase } from '../harness/dependencies/database';
import { SIGNING_SECRET } from '../harness/keys';
import { HOOK, signatureHeaders } from '../harness/requests';

/** Handles `test.event` and `user.created`. Writes a row, unless a test replaces the implementation. */
const handle = vi.fn<(data: { id: string }, context: EventContext) => Promise<unknown>>();
const handlers = vi.hoisted(() => ({ events: {} }));
vi.mock('#events', () => handlers);
const Data = z.object({ id: z.string(), name: z.string().optional() });
const handler = defineEvent(Data, (data, context) => handle(data, context));
Object.assign(handlers.events, {
  'test.deleted': forgetDeletedUser,
  'test.event': handler,
  'user.created': handler,
});

const database = await createTestDatabase();
const { pool, idsOf } = database;
// The privileges on the service's tables are those of docs/deploy.md. `webhook_messages` contains the ids of the handled
// messages, and `webhook_subjects` the time of the newest event of each user. A user.deleted event can add a row to
// `pending_deletions`.
const { role, url } = await database.createRole(`GRANT SELECT, INSERT ON users TO $role;
  GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_messages, webhook_subjects, pending_deletions TO $role;
  GRANT INSERT (kind, operation, internal_id, id_hash, run, changed_by, reason) ON link_changes TO $role`);
afterAll(async () => {
  await closeDatabase();
  await database.drop();
  vi.unstubAllEnvs();
});
const environment = { ...BUILD_TIME_VALUES, IDP_WEBHOOK_SIGNING_SECRET: SIGNING_SECRET, DATABASE_URL: url };
for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
log.level = 'silent';

beforeEach(async () => {
  handle.mockReset().mockImplementation((data, { transaction }) => write(transaction, data.id));
  await pool.query('TRUNCATE users, previous_ids, webhook_messages, webhook_subjects');
});

let messages = 0;
const newId = () => `msg_events_${++messages}`;

async function deliver(type: string, data: unknown, { id = newId(), timestamp = Date.now() } = {}) {
  const body = JSON.stringify({ type, data, object: 'event', timestamp });
  const request = new NextRequest(`http://localhost${HOOK}`, {
    method: 'POST',
    headers: signatureHeaders(body, { id }),
    body,
  });
  const response = await POST(request, { params: Promise.resolve({}) });
  return { status: response.status, body: await response.json() };
}
const acknowledged = (eventType: string) => ({ status: 200, body: { received: true, eventType } });
const failed = { status: 500, body: { message: 'Internal Server Error' } };
const invalid = { status: 400, body: { message: 'Invalid webhook event' } };

/** Writes a row in the transaction of a handler. */
const write = (transaction: EventContext['transaction'], id: string) =>
  transaction.$executeRaw`INSERT INTO users (id, identity_provider_user_id) VALUES (gen_random_uuid(), ${id})`;

const storedMessages = async () =>
  (await pool.query<{ id: string }>('SELECT id FROM webhook_messages')).rows.map(({ id }) => id);

describe('A handler of an event', () => {
  test('The writes of a handler and the message id are stored, and another delivery of the message does not run the handler', async () => {
    const id = newId();
    const timestamp = Date.now() - 1_000;
    for (let delivery = 0; delivery < 3; delivery += 1)
      expect(await deliver('test.event', { id: 'row' }, { id, timestamp })).toEqual(
        acknowledged('test.event'),
      );
    expect(handle).toHaveBeenCalledTimes(1);
    expect(handle.mock.calls[0]).toMatchObject([{ id: 'row' }, { messageId: id, occurredAt: timestamp }]);
    expect(await idsOf('row')).toHaveLength(1);
    expect(await storedMessages()).toEqual([id]);
  });

  test.each(['read committed', 'repeatable read', 'serializable'])(
    'Concurrent deliveries of a message run its handler once at isolation level %s',
    async (level) => {
      await closeDatabase();
      await pool.query(`ALTER ROLE ${role} SET default_transaction_isolation = '${level}'`);
      onTestFinished(async () => {
        await pool.query(`ALTER ROLE ${role} RESET default_transaction_isolation`);
        await closeDatabase();
      });
      handle.mockImplementation(async (data, { transaction }) => {
        await write(transaction, data.id);
        await transaction.$executeRaw`SELECT pg_sleep(0.2)`;
      });
      const id = newId();
      const deliveries = Array.from({ length: 6 }, () => deliver('test.event', { id: 'race' }, { id }));
      for (const response of await Promise.all(deliveries))
        expect(response).toEqual(acknowledged('test.event'));
      expect(await idsOf('race')).toHaveLength(1);
      expect(handle).toHaveBeenCalledTimes(1);
    },
  );

  test.each<[what: string, fail: () => unknown]>([
    ['throws', () => Promise.reject(new Error('A handler failed'))],
    ['loses its connection', () => database.proxy.treat('reset')],
    ['does not settle within 6 s', () => new Promise(() => undefined)],
  ])(
    'After an event handler %s, nothing is committed, and the next delivery completes the event',
    async (_what, fail) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      onTestFinished(async () => {
        vi.useRealTimers();
        await database.proxy.treat('forward');
      });
      const failing = vi.fn(fail);
      handle.mockImplementationOnce(async (data, { transaction, claimNewest }) => {
        await claimNewest(data.id);
        await write(transaction, data.id);
        await failing();
      });
      const id = newId();
      const delivery = deliver('test.event', { id: 'retried' }, { id });
      await vi.waitFor(() => expect(failing).toHaveBeenCalled());
      await vi.advanceTimersByTimeAsync(6_000);
      expect(await delivery).toEqual(failed);
      vi.useRealTimers();
      await database.proxy.treat('forward');
      expect([await idsOf('retried'), await storedMessages()]).toEqual([[], []]);
      expect((await pool.query('SELECT FROM webhook_subjects')).rowCount).toBe(0);
      expect(await deliver('test.event', { id: 'retried' }, { id })).toEqual(acknowledged('test.event'));
      expect(await idsOf('retried')).toHaveLength(1);
    },
  );

  test.each([1e300, 2 ** 63, 9e15, 1.5, Number.NaN])(
    'An event whose timestamp is not a possible time has the time of its delivery: %s',
    async (timestamp) => {
      const before = Date.now() - 1_000;
      const outcomes: unknown[] = [];
      handle.mockImplementation(async (_data, { occurredAt, claimNewest }) => {
        expect(occurredAt).toBeGreaterThanOrEqual(before);
        outcomes.push(await claimNewest('subject'));
      });
      expect(await deliver('test.event', { id: 'odd' }, { timestamp })).toEqual(acknowledged('test.event'));
      expect(await deliver('test.event', { id: 'odd' }, { timestamp: Date.now() + 60_000 })).toEqual(
        acknowledged('test.event'),
      );
      expect(outcomes).toEqual([true, true]);
      handle.mockImplementation((_data, { claimNewest }) => claimNewest('subject', timestamp));
      expect(await deliver('test.event', { id: 'odd' })).toEqual(invalid);
    },
  );

  test('An event whose handler catches a database error gets a 500, because the transaction is rolled back', async () => {
    handle.mockImplementationOnce(async (data, { transaction }) => {
      await write(transaction, data.id);
      await transaction.$executeRaw`SELECT 1 / 0`.catch(() => undefined);
    });
    expect(await deliver('test.event', { id: 'caught' })).toEqual(failed);
    expect(await storedMessages()).toEqual([]);
  });

  test.each(['user.banned', 'constructor', '__proto__', 'hasOwnProperty', ''])(
    'An event without a handler is acknowledged without a database statement: %j',
    async (type) => {
      database.takeStatements();
      expect(await deliver(type, { id: 'user_ada' })).toEqual(acknowledged(type));
      expect(database.takeStatements()).toEqual([]);
    },
  );

  test('For each handled message, the service deletes up to ten rows older than 30 days from webhook_messages and up to ten from webhook_subjects', async () => {
    for (const [table, columns, values] of [
      ['webhook_messages', 'id, received_at', ''],
      ['webhook_subjects', 'id, received_at, applied_time', ', 1'],
    ]) {
      await pool.query(`INSERT INTO ${table} (${columns})
        SELECT 'old_' || n, now() - interval '31 days' ${values} FROM generate_series(1, 15) AS n
        UNION ALL SELECT 'new', now() - interval '29 days' ${values}`);
    }
    const old = async () =>
      (
        await pool.query(
          "SELECT FROM webhook_messages WHERE id LIKE 'old%' UNION ALL SELECT FROM webhook_subjects WHERE id LIKE 'old%'",
        )
      ).rowCount;
    await deliver('test.event', { id: 'first' });
    expect(await old()).toBe(10);
    await deliver('test.event', { id: 'second' });
    expect(await old()).toBe(0);
    expect(await storedMessages()).toContain('new');
  });
});

test('The database role of the service may insert a pending deletion and update it after a second deletion event of the user', async () => {
  for (const _attempt of [1, 2])
    expect(await deliver('test.deleted', { id: 'user_ada' })).toEqual(acknowledged('test.deleted'));
  const { rows } = await pool.query('SELECT provider_id AS id FROM pending_deletions');
  expect(rows).toEqual([{ id: 'user_ada' }]);
});

test('Without a time, claimNewest() compares the times of the events, and an event with the same time is not outdated', async () => {
  const outcomes: boolean[] = [];
  handle.mockImplementation(async (data, { claimNewest }) => outcomes.push(await claimNewest(data.id)));
  for (const timestamp of [2_000, 1_000, 2_000, 3_000])
    await deliver('test.event', { id: 'subject' }, { timestamp });
  expect(outcomes).toEqual([true, false, true, true]);
});

test('A failed handler of user.created does not undo the registration of the user', async () => {
  handle.mockRejectedValueOnce(new Error('A handler failed')).mockResolvedValueOnce(undefined);
  const id = newId();
  expect(await deliver('user.created', { id: 'user_ada' }, { id })).toEqual(failed);
  expect(await idsOf('user_ada')).toHaveLength(1);
  expect(await deliver('user.created', { id: 'user_ada' }, { id })).toEqual(acknowledged('user.created'));
  expect(handle).toHaveBeenCalledTimes(2);
});

test('An event whose data does not match the schema gets a 400 without a statement, but user.created registers the user', async () => {
  database.takeStatements();
  expect(await deliver('test.event', { id: 7 })).toEqual(invalid);
  expect([handle.mock.calls, database.takeStatements()]).toEqual([[], []]);
  expect(await deliver('user.created', { id: 'user_ada', name: 7 })).toEqual(invalid);
  expect(await idsOf('user_ada')).toHaveLength(1);
});
